/** Files that were given to the agents, and forgetting a source with all that was formed of it. */

import { Eraser } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";

import { api, data, once, type Schemas } from "../../api/client";
import { useAct, usePages, useRead } from "../../api/use";
import { bytes, number } from "../../format";
import { useMe } from "../../session";
import { t, word } from "../../text";
import { Button, Select, TextField } from "../../ui/controls";
import { Confirm, useToast } from "../../ui/dialog";
import { Badge, Card, Empty, Loaded, ProblemNote } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { Counts, mayWrite, When } from "./parts";

type Kind = "document" | "conversation" | "origin";
const ORIGINS = ["person", "picture", "recording", "tool", "outside", "web", "client"] as const;

function sourceOf(kind: Kind, source: string) {
  if (kind === "conversation") return { conversation_id: source };
  if (kind === "document") return { document: source };
  const [of = "", ...rest] = source.split("/");
  return { origin: { kind: of as (typeof ORIGINS)[number], id: rest.join("/") } };
}

export function Documents() {
  const me = useMe();
  const [chosen, change] = useParameters();
  const [round, setRound] = useState(0);
  const kind = (chosen.of ?? "document") as Kind;
  return (
    <>
      <Files onForget={(id) => change({ of: "", source: id }, false)} round={round} />
      <Choose />
      {chosen.source && (
        <Preview
          key={`${kind} ${chosen.source}`}
          kind={kind}
          source={chosen.source}
          may={mayWrite(me)}
          onClose={() => change({ of: "", source: "" })}
          onDone={() => {
            change({ of: "", source: "" });
            setRound(round + 1);
          }}
        />
      )}
      <Forgettings round={round} />
    </>
  );
}

function Files(props: { onForget: (id: string) => void; round: number }) {
  const pages = usePages(
    async (after, signal) => {
      const page = await data(api.GET("/v1/files", { params: { query: { limit: 30, ...(after && { after }) } }, signal }));
      return { items: page.data, next: page.has_more ? page.last_id : null };
    },
    [props.round],
  );
  return (
    <Card title={t("memory.files")}>
      <Loaded of={pages}>
        {(files) =>
          files.length ? (
            <Table
              label={t("memory.files")}
              rows={files}
              id={(file) => file.id}
              more={pages.more}
              columns={[
                { id: "name", label: t("memory.file"), show: (file) => file.filename, by: (file) => file.filename },
                { id: "size", label: t("memory.size"), show: (file) => bytes(file.bytes), by: (file) => file.bytes, number: true },
                { id: "at", label: t("memory.uploaded"), show: (file) => <When at={new Date(file.created_at * 1000).toISOString()} />, by: (file) => file.created_at },
                {
                  id: "act",
                  label: t("shell.actions"),
                  show: (file) => (
                    <Button kind="quiet" onClick={() => props.onForget(file.id)} aria-label={`${t("memory.preview_act")}: ${file.filename}`}>
                      {t("memory.preview_act")}
                    </Button>
                  ),
                },
              ]}
            />
          ) : (
            <Empty title={t("memory.no_files")}>
              <p>{t("memory.no_files_hint")}</p>
            </Empty>
          )
        }
      </Loaded>
    </Card>
  );
}

function Choose() {
  const [chosen, change] = useParameters();
  const [kind, setKind] = useState(chosen.of ?? "document");
  const [text, setText] = useState("");
  const [origin, setOrigin] = useState<string>("web");
  useEffect(() => setKind(chosen.of ?? "document"), [chosen.of]);
  const ready = kind === "origin" || text.trim();
  return (
    <Card title={t("memory.forget_source")}>
      <p class="note">{t("memory.forget_source_hint")}</p>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          const source = kind === "origin" ? (text.trim() ? `${origin}/${text.trim()}` : origin) : text.trim();
          if (ready) change({ of: kind === "document" ? "" : kind, source }, false);
        }}
      >
        <Select
          label={t("memory.source_kind")}
          value={kind}
          options={["document", "conversation", "origin"].map((value) => ({ value, label: word("memory", `source_${value}`) }))}
          onChange={(event) => setKind(event.currentTarget.value)}
        />
        {kind === "origin" && (
          <Select
            label={t("memory.origin")}
            value={origin}
            options={ORIGINS.map((value) => ({ value, label: word("memory", `origin_${value}`) }))}
            onChange={(event) => setOrigin(event.currentTarget.value)}
          />
        )}
        <TextField
          label={word("memory", `source_name_${kind}`)}
          maxLength={200}
          autocomplete="off"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Button type="submit" disabled={!ready}>
          {t("memory.preview_act")}
        </Button>
      </form>
    </Card>
  );
}

const PAGE = 50;

function Preview(props: { kind: Kind; source: string; may: boolean; onClose: () => void; onDone: () => void }) {
  const { kind, source } = props;
  const toast = useToast();
  const [asking, setAsking] = useState(false);
  const [key] = useState(once);
  const [total, setTotal] = useState<Schemas["SourcePreview"]>();
  const body = sourceOf(kind, source);
  const pages = usePages(
    async (cursor, signal) => {
      const offset = Number(cursor ?? 0);
      const found = (await data(
        api.POST("/api/v1/forgettings", { body, params: { query: { dry_run: true, limit: PAGE, offset } }, signal }),
      )) as Schemas["SourcePreview"];
      setTotal(found);
      return { items: found.things ?? [], next: offset + PAGE < found.total ? String(offset + PAGE) : null };
    },
    [kind, source],
  );
  const act = useAct(async () => {
    await data(api.POST("/api/v1/forgettings", { body, params: { header: key } }));
    toast(t("memory.forgetting_begun"));
    props.onDone();
  });
  const nothing = total?.total === 0 && !total.media?.length;
  return (
    <Card
      class="memory-forgetting"
      title={t("memory.preview_of", { name: source })}
      actions={
        <>
          <Button kind="quiet" onClick={props.onClose}>
            {t("shell.close")}
          </Button>
          {props.may && (
            <Button kind="danger" icon={<Eraser aria-hidden="true" />} disabled={!total || nothing} onClick={() => setAsking(true)}>
              {t("memory.forget")}
            </Button>
          )}
        </>
      }
    >
      <Loaded of={pages}>
        {(things) =>
          nothing ? (
            <Empty title={t("memory.nothing_of_it")}>
              <p>{t("memory.nothing_of_it_hint")}</p>
            </Empty>
          ) : (
            <div class="memory-preview" aria-live="polite">
              <p>{t("memory.would_go", { count: total?.total ?? 0 })}</p>
              <Counts of={total?.held} />
              {!!total?.media?.length && <p>{t("memory.files_go", { count: total.media.length })}</p>}
              {!!total?.detached && <p>{t("memory.detached", { count: total.detached })}</p>}
              {total?.more && <p class="note">{t("memory.more_goes")}</p>}
              {things.length > 0 && (
                <Table
                  label={t("memory.goes_with_it")}
                  rows={things}
                  id={(thing) => `${thing.kind} ${thing.id}`}
                  more={pages.more}
                  columns={[
                    { id: "kind", label: t("memory.kind"), show: (thing) => <Badge>{word("memory", `thing_${thing.kind}`)}</Badge>, by: (thing) => thing.kind },
                    { id: "text", label: t("memory.text"), show: (thing) => thing.text || <code>{thing.id}</code>, by: (thing) => thing.text ?? "" },
                  ]}
                />
              )}
            </div>
          )
        }
      </Loaded>
      {asking && (
        <Confirm title={t("memory.forget_source")} act={t("memory.forget")} busy={act.running} problem={act.problem} onConfirm={() => void act.run()} onClose={() => setAsking(false)}>
          <p>{t("memory.forget_source_confirm", { name: source, count: total?.total ?? 0 })}</p>
          <p class="note">{t("memory.forget_final")}</p>
        </Confirm>
      )}
      {!props.may && <ProblemNoteForReaders />}
    </Card>
  );
}

function ProblemNoteForReaders() {
  return <p class="note">{t("memory.only_read")}</p>;
}

function Forgettings(props: { round: number }) {
  const [busy, setBusy] = useState(true);
  const list = useRead(
    async (signal) => {
      const found = (await data(api.GET("/api/v1/forgettings", { params: { query: { limit: 50 } }, signal }))).forgettings;
      setBusy(found.some((each) => each.state === "pending"));
      return found;
    },
    [props.round],
    busy ? 3 : undefined,
  );
  return (
    <Card title={t("memory.forgettings")}>
      {list.problem && <ProblemNote problem={list.problem} retry={list.reload} />}
      <Loaded of={{ ...list, problem: undefined }}>
        {(forgettings) =>
          forgettings.length ? (
            <Table
              label={t("memory.forgettings")}
              rows={forgettings}
              id={(each) => each.forgetting_id}
              columns={[
                { id: "what", label: t("memory.source"), show: (each) => sourceWords(each) },
                {
                  id: "state",
                  label: t("memory.state"),
                  show: (each) => <Badge tone={each.state === "complete" ? "good" : "warn"}>{word("memory", `state_${each.state}`)}</Badge>,
                  by: (each) => each.state,
                },
                { id: "asked", label: t("memory.asked_at"), show: (each) => <When at={each.requested_at} />, by: (each) => each.requested_at },
                { id: "gone", label: t("memory.gone"), show: (each) => number(sum(each.before)), by: (each) => sum(each.before), number: true },
                { id: "proof", label: t("memory.proof"), show: (each) => (each.digest ? <code title={each.digest}>{each.digest.slice(0, 12)}…</code> : "–") },
              ]}
            />
          ) : (
            <p class="note">{t("memory.no_forgettings")}</p>
          )
        }
      </Loaded>
    </Card>
  );
}

function sum(counts: Record<string, Record<string, number>> | undefined): number {
  return Object.values(counts ?? {}).reduce((total, each) => total + Object.values(each).reduce((one, other) => one + other, 0), 0);
}

function sourceWords(each: Schemas["SourceForgetting"]): string {
  if (each.conversation_id) return `${word("memory", "source_conversation")} ${each.conversation_id}`;
  if (each.origin) return [word("memory", `origin_${each.origin.kind}`), each.origin.id].filter(Boolean).join(" ");
  return t("memory.files_count", { count: each.media?.length ?? 0 });
}
