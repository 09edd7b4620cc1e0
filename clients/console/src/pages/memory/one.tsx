/** One memory: what it says, where it comes from, what it said before; correcting and forgetting it. */

import { Pencil } from "lucide-preact";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";

import { api, callTool, data, once, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { useMe } from "../../session";
import { t, word } from "../../text";
import { Button, CopyButton, TextArea } from "../../ui/controls";
import { Confirm, Dialog, useToast } from "../../ui/dialog";
import { Card, Facts, Loaded, ProblemNote } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { readMetadata, writeMetadata } from "./add";
import { type Act, asUser, Counts, Kind, mayWrite, type Memory, MetadataList, OnePage, Origins, ROOT, When } from "./parts";

export interface Preview {
  facts: { id: string; text: string }[];
  turns: string[];
  removed: Record<string, number>;
}

export function MemoryPage(props: { id: string }) {
  const { id } = props;
  const me = useMe();
  const [{ user }] = useParameters();
  const [open, setOpen] = useState<Act>();
  const history = useRead((signal) => data(api.GET("/api/v1/memory/{id}/history", { params: { path: { id } }, signal, ...asUser(user) })), [id, user]);
  const memory = history.data?.memory;
  return (
    <OnePage
      title={t("memory.one")}
      back={{ href: user ? `${ROOT}?user=${encodeURIComponent(user)}` : ROOT, label: t("memory.back") }}
      may={!!memory && !user && mayWrite(me)}
      correct={<Pencil aria-hidden="true" />}
      open={setOpen}
    >
      {user && <p class="note">{t("memory.of_user", { user })}</p>}
      <Loaded of={history}>
        {(found) => (
          <>
            <Card>
              <p class="memory-whole">{found.memory.text}</p>
              <Facts of={rowsOf(found.memory)} />
            </Card>
            <Timeline of={found} />
          </>
        )}
      </Loaded>
      {memory && open === "correct" && <Correct memory={memory} onClose={() => setOpen(undefined)} onDone={history.reload} />}
      {memory && open === "forget" && <Forget ids={[memory.id]} text={memory.text} onClose={() => setOpen(undefined)} />}
    </OnePage>
  );
}

function rowsOf(memory: Memory): [string, preact.ComponentChildren][] {
  const rows: [string, preact.ComponentChildren][] = [
    [t("memory.kind"), <Kind kind={memory.kind} />],
    [t("memory.origin"), <Origins labels={memory.labels} />],
    [t("memory.occurred"), <When at={memory.occurred_at} />],
    [t("memory.created"), <When at={memory.created_at} />],
    [t("memory.expires"), memory.expires_at ? <When at={memory.expires_at} /> : t("memory.never")],
    [t("memory.metadata"), <MetadataList of={memory.metadata} />],
    ["ID", <span class="memory-id"><code>{memory.id}</code><CopyButton text={memory.id} /></span>],
  ];
  if (memory.external_id) rows.push([t("memory.external"), memory.external_id]);
  if (memory.speaker) rows.splice(2, 0, [t("memory.speaker"), memory.speaker]);
  if (memory.conversation_id) {
    const href = `${ROOT}?conversation=${encodeURIComponent(memory.conversation_id)}`;
    rows.push([t("memory.conversation"), <a href={href}>{memory.conversation_id}</a>]);
  }
  return rows;
}

function Timeline(props: { of: Schemas["MemoryHistory"] }) {
  const { memory, versions = [] } = props.of;
  return (
    <Card title={t("memory.timeline")}>
      {versions.length === 0 && <p class="note">{t("memory.unchanged")}</p>}
      <ol class="timeline">
        <li class="now">
          <p class="memory-line">
            {t("memory.since_then")} <When at={memory.updated_at} />
          </p>
          <p class="memory-whole">{memory.text}</p>
        </li>
        {versions.map((version) => (
          <li key={version.until}>
            <p class="memory-line">
              <When at={version.since} /> – <When at={version.until} />
            </p>
            <p class="memory-whole">{version.text}</p>
            <MetadataList of={version.metadata} />
          </li>
        ))}
      </ol>
    </Card>
  );
}

function Correct(props: { memory: Memory; onClose: () => void; onDone: () => void }) {
  const { memory } = props;
  const toast = useToast();
  const [text, setText] = useState(memory.text);
  const [metadata, setMetadata] = useState(writeMetadata(memory.metadata));
  const change = (body: Schemas["MemoryChange"]) =>
    data(api.PATCH("/api/v1/memory/{id}", { params: { path: { id: memory.id }, header: once() }, body }));
  const act = useAct(async () => {
    const before = { text: memory.text, metadata: memory.metadata ?? {} };
    await change({ text, metadata: readMetadata(metadata) });
    props.onDone();
    props.onClose();
    toast(t("memory.corrected"), () => void change(before).then(props.onDone));
  });
  return (
    <Dialog
      title={t("memory.correct")}
      onClose={props.onClose}
      actions={
        <>
          <Button onClick={props.onClose}>{t("shell.cancel")}</Button>
          <Button kind="primary" busy={act.running} disabled={!text.trim()} onClick={() => void act.run()}>
            {t("shell.save")}
          </Button>
        </>
      }
    >
      <p class="note">{t("memory.correct_hint")}</p>
      <TextArea label={t("memory.text")} rows={5} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <TextArea label={t("memory.metadata")} hint={t("memory.metadata_hint")} rows={3} value={metadata} onInput={(event) => setMetadata(event.currentTarget.value)} />
      {act.problem && <ProblemNote problem={act.problem} />}
    </Dialog>
  );
}

/** Shows what would go with memories or facts, and forgets them once that is confirmed. */
export function Forget(props: { ids: string[]; text: string; onClose: () => void }) {
  const { route } = useLocation();
  const toast = useToast();
  const preview = useRead((signal) => callTool<Preview>("memory.forget.preview", { ids: props.ids }, signal), props.ids);
  const act = useAct(async () => {
    await callTool("memory.forget", { ids: props.ids });
    toast(t("memory.forgotten"));
    route(ROOT);
  });
  return (
    <Confirm title={t("memory.forget_title")} act={t("memory.forget")} busy={act.running || !preview.data} problem={act.problem} onConfirm={() => void act.run()} onClose={props.onClose}>
      <p>{t("memory.forget_text")}</p>
      <blockquote class="memory-quote">{props.text}</blockquote>
      <Loaded of={preview} lines={3}>
        {(found) => (
          <div class="memory-preview">
            <h3>{t("memory.goes_with_it")}</h3>
            <Counts of={{ memory: found.removed, ...(found.turns.length ? { orchestrator: { turns: found.turns.length } } : {}) }} />
            {found.facts.length > 0 && (
              <ul>
                {found.facts.map((fact) => (
                  <li key={fact.id}>{fact.text}</li>
                ))}
              </ul>
            )}
          </div>
        )}
      </Loaded>
      <p class="note">{word("memory", "forget_final")}</p>
    </Confirm>
  );
}
