/** Where a message is written: text, the agent that answers, and files by button, drop or paste. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Paperclip, Send, X } from "lucide-preact";

import { api, data, once, Problem, type Schemas } from "../../api/client";
import { useAct } from "../../api/use";
import { bytes } from "../../format";
import { t } from "../../text";
import { Button, IconButton, Select } from "../../ui/controls";
import { ProblemNote } from "../../ui/layout";

interface Draft {
  text: string;
  files: File[];
}

async function upload(file: File): Promise<string> {
  const headers = { ...once(), "Content-Type": file.type || "text/plain", "X-File-Name": encodeURIComponent(file.name) };
  const sent = api.POST("/api/v1/media", { headers, body: file as never, bodySerializer: () => file });
  const stored = await data(sent).catch((error: unknown) => {
    throw error instanceof Problem ? new Problem(error.status, error.code, `${file.name}: ${error.message}`, error.field, error.retryAfter) : error;
  });
  return stored.id;
}

/** @param first words to put into the field, such as those of a message that is edited; each new object puts them there again. */
export function Composer(props: { conversation?: string | undefined; agent: string; agents: Schemas["AgentInfo"][]; first: { text: string }; chosen: (agent: string) => void; sent: (turn: Schemas["AcceptedTurn"], text: string, files: string[]) => void }) {
  const [draft, setDraft] = useState<Draft>({ text: props.first.text, files: [] });
  const [over, setOver] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const tried = useRef({ body: "", key: "" });
  useEffect(() => {
    setDraft({ text: "", files: [] });
  }, [props.conversation]);
  useEffect(() => {
    setDraft({ text: props.first.text, files: [] });
    field.current?.focus();
  }, [props.first]);
  const send = useAct(async (given: Draft) => {
    if (!given.text.trim() && given.files.length === 0) return;
    const media = await Promise.all(given.files.map(upload));
    const body = {
      currentMessageText: given.text,
      agent: props.agent,
      ...(props.conversation ? { conversationId: props.conversation } : {}),
      ...(media.length ? { currentMessageMedia: media } : {}),
    };
    // The same message that did not arrive is sent under the same key, and is one turn.
    const said = JSON.stringify(body);
    if (tried.current.body !== said) tried.current = { body: said, key: once()["Idempotency-Key"] };
    const turn = await data(api.POST("/api/v1/turns", { params: { header: { "Idempotency-Key": tried.current.key } }, body: body as Schemas["MessageGiven"] }));
    tried.current = { body: "", key: "" };
    setDraft({ text: "", files: [] });
    props.sent(turn, given.text, given.files.map((file) => file.name));
  });
  const add = (files: FileList | File[]) => setDraft((before) => ({ ...before, files: [...before.files, ...files] }));
  const about = props.agents.find((each) => each.name === props.agent)?.description;
  return (
    <form
      class={over ? "composer over" : "composer"}
      onSubmit={(event) => {
        event.preventDefault();
        void send.run(draft);
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        if (event.dataTransfer) add(event.dataTransfer.files);
      }}
    >
      {send.problem && <ProblemNote problem={send.problem} />}
      {draft.files.length > 0 && (
        <ul class="files" aria-label={t("chat.files")}>
          {draft.files.map((file, at) => (
            <li key={at}>
              {file.name} <span class="note">{bytes(file.size)}</span>
              <IconButton label={t("chat.remove_file", { name: file.name })} icon={<X aria-hidden="true" />} onClick={() => setDraft({ ...draft, files: draft.files.filter((_, other) => other !== at) })} />
            </li>
          ))}
        </ul>
      )}
      <label class="unseen" for="message">
        {t("chat.message")}
      </label>
      <textarea
        id="message"
        ref={field}
        class="input"
        rows={2}
        placeholder={t("chat.placeholder")}
        value={draft.text}
        onInput={(event) => setDraft({ ...draft, text: event.currentTarget.value })}
        onPaste={(event) => event.clipboardData && event.clipboardData.files.length > 0 && add(event.clipboardData.files)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          event.currentTarget.form?.requestSubmit();
        }}
      />
      <div class="composer-foot">
        <Select
          label={t("chat.agent")}
          hidden
          value={props.agent}
          disabled={!!props.conversation}
          title={about ?? ""}
          options={[...new Set([props.agent, ...props.agents.map((each) => each.name)])].map((name) => ({ value: name, label: name }))}
          onChange={(event) => props.chosen(event.currentTarget.value)}
        />
        <input ref={picker} type="file" multiple hidden onChange={(event) => event.currentTarget.files && add(event.currentTarget.files)} />
        <IconButton label={t("chat.attach")} icon={<Paperclip aria-hidden="true" />} onClick={() => picker.current?.click()} />
        <Button kind="primary" type="submit" busy={send.running} icon={<Send aria-hidden="true" />}>
          {t("chat.send")}
        </Button>
      </div>
    </form>
  );
}
