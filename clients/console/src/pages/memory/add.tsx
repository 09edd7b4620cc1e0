/** Adding and correcting a memory. */

import { useState } from "preact/hooks";

import { api, data, once, Problem } from "../../api/client";
import { useAct } from "../../api/use";
import { t } from "../../text";
import { Button, TextArea, TextField } from "../../ui/controls";
import { Dialog, useToast } from "../../ui/dialog";
import { ProblemNote } from "../../ui/layout";
import { type Metadata } from "./parts";

/** Metadata as people write it: one `name: value` a line. Numbers and `true`, `false` and `null` are what they look like. */
export function readMetadata(text: string): Metadata {
  const found: Metadata = {};
  for (const line of text.split("\n").filter((each) => each.trim())) {
    const colon = line.indexOf(":");
    if (colon < 1) throw new Problem(400, "bad_request", t("memory.metadata_line", { line }), "metadata");
    const value = line.slice(colon + 1).trim();
    found[line.slice(0, colon).trim()] = /^(-?\d+(\.\d+)?|true|false|null)$/.test(value) ? (JSON.parse(value) as number | boolean | null) : value;
  }
  return found;
}

export function writeMetadata(metadata: Metadata | undefined): string {
  return Object.entries(metadata ?? {})
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}

export function AddMemory(props: { onClose: () => void; onAdded: (id: string) => void }) {
  const toast = useToast();
  const [text, setText] = useState("");
  const [speaker, setSpeaker] = useState("");
  const [conversation, setConversation] = useState("");
  const [external, setExternal] = useState("");
  const [metadata, setMetadata] = useState("");
  const [expires, setExpires] = useState("");
  const [key] = useState(once);
  const add = useAct(async () => {
    const memory = {
      text,
      metadata: readMetadata(metadata),
      ...(speaker.trim() && { speaker: speaker.trim() }),
      ...(external.trim() && { external_id: external.trim() }),
      ...(expires && { expires_at: new Date(expires).toISOString() }),
    };
    const body = { memories: [memory], wait: true, ...(conversation.trim() && { conversation_id: conversation.trim() }) };
    const answer = await data(api.POST("/api/v1/memory", { body, params: { header: key } }));
    toast(t("memory.added"));
    props.onAdded(answer.memories[0]?.id ?? "");
  });
  return (
    <Dialog
      title={t("memory.add")}
      onClose={props.onClose}
      actions={
        <>
          <Button onClick={props.onClose}>{t("shell.cancel")}</Button>
          <Button kind="primary" busy={add.running} disabled={!text.trim()} onClick={() => void add.run()}>
            {t("memory.add_it")}
          </Button>
        </>
      }
    >
      <TextArea label={t("memory.text")} rows={4} value={text} autofocus onInput={(event) => setText(event.currentTarget.value)} />
      <div class="memory-two">
        <TextField label={t("memory.speaker")} hint={t("memory.speaker_hint")} value={speaker} onInput={(event) => setSpeaker(event.currentTarget.value)} />
        <TextField label={t("memory.expires")} hint={t("memory.expires_hint")} type="datetime-local" value={expires} onInput={(event) => setExpires(event.currentTarget.value)} />
        <TextField label={t("memory.conversation")} hint={t("memory.conversation_hint")} value={conversation} onInput={(event) => setConversation(event.currentTarget.value)} />
        <TextField label={t("memory.external")} hint={t("memory.external_hint")} value={external} onInput={(event) => setExternal(event.currentTarget.value)} />
      </div>
      <TextArea label={t("memory.metadata")} hint={t("memory.metadata_hint")} rows={2} value={metadata} onInput={(event) => setMetadata(event.currentTarget.value)} />
      {add.problem && <ProblemNote problem={add.problem} />}
    </Dialog>
  );
}
