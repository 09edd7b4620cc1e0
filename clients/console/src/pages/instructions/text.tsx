/** One text: read, edited, compared with what is served now, and published as a release. */

import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { Pencil } from "lucide-preact";

import { callTool } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { number } from "../../format";
import { BASE } from "../../pages";
import { t } from "../../text";
import { Button, CopyButton, LinkButton, TextArea, TextField } from "../../ui/controls";
import { Confirm } from "../../ui/dialog";
import { Card, Facts, Loaded, Page, ProblemNote } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Changes } from "./changes";
import { textHref, TextStatus, tierOf } from "./texts";
import { useActivate } from "./activate";
import type { InstructionShown, Publication, ReleaseList } from "./tools";

function Editor(props: { shown: InstructionShown; done: () => void; close: () => void }) {
  const { info, content } = props.shown;
  const [text, setText] = useState(content);
  const [note, setNote] = useState("");
  const [preview, setPreview] = useState<Publication>();
  const [asking, setAsking] = useState(false);
  const { published } = useActivate(props.done);
  const given = { texts: [{ tag: info.tag, content: text }], note };
  const compare = useAct(async () => setPreview(await callTool<Publication>("publish_instructions", { ...given, dry_run: true })));
  const publish = useAct(async () => {
    const { releases } = await callTool<ReleaseList>("list_releases");
    const done = await callTool<Publication>("publish_instructions", given);
    published(done, releases.find((each) => each.active)?.number ?? 0);
    props.close();
  });
  const unchanged = text === content;
  return (
    <Card title={t("instructions.edit")}>
      <TextArea
        label={t("instructions.text")}
        class="input mono instruction-editor"
        rows={22}
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setPreview(undefined);
        }}
      />
      <TextField label={t("instructions.note")} hint={t("instructions.note_hint")} maxLength={500} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
      <div class="row">
        <Button disabled={unchanged} busy={compare.running} onClick={() => void compare.run()}>
          {t("instructions.preview")}
        </Button>
        <Button kind="primary" disabled={unchanged} onClick={() => setAsking(true)}>
          {t("instructions.publish")}
        </Button>
        <Button kind="quiet" onClick={props.close}>
          {t("shell.cancel")}
        </Button>
      </div>
      {compare.problem && <ProblemNote problem={compare.problem} />}
      {preview && <Changes of={preview.changes} before={t("instructions.now")} after={t("instructions.yours")} />}
      {asking && (
        <Confirm title={t("instructions.publish")} act={t("instructions.publish")} busy={publish.running} problem={publish.problem} onConfirm={() => void publish.run()} onClose={() => setAsking(false)}>
          <p>{t("instructions.publish_hint", { tag: info.tag })}</p>
        </Confirm>
      )}
    </Card>
  );
}

export function TextPage(props: { tag: string }) {
  const { route } = useLocation();
  const [{ edit }, change] = useParameters();
  const text = useRead((signal) => callTool<InstructionShown>("show_instruction", { tag: props.tag }, signal), [props.tag]);
  return (
    <Page
      title={props.tag}
      wide
      actions={
        <>
          <LinkButton href={`${BASE}/instructions/releases?tag=${encodeURIComponent(props.tag)}`}>{t("instructions.compare")}</LinkButton>
          {!edit && (
            <Button kind="primary" icon={<Pencil aria-hidden="true" />} disabled={!text.data} onClick={() => change({ edit: "1" })}>
              {t("shell.edit")}
            </Button>
          )}
        </>
      }
    >
      <nav aria-label={t("traces.path")}>
        <a href={`${BASE}/instructions`}>{t("instructions.all_texts")}</a>
      </nav>
      <Loaded of={text} lines={10}>
        {(shown) => (
          <div class="turn-parts">
            {edit ? (
              <Editor shown={shown} done={text.reload} close={() => route(textHref(props.tag))} />
            ) : (
              <Card title={t("instructions.text")} actions={<CopyButton text={shown.content} />}>
                <pre class="instruction">{shown.content}</pre>
              </Card>
            )}
            <Card title={t("instructions.about")}>
              <Facts
                of={[
                  [t("instructions.status"), <TextStatus of={shown.info} />],
                  [t("instructions.tier"), tierOf(shown.info)],
                  [t("instructions.version"), shown.info.version],
                  [t("instructions.release"), shown.release],
                  [t("instructions.tokens"), number(shown.info.tokens)],
                  [t("instructions.use_cases"), shown.info.use_cases.join(", ") || "–"],
                  [
                    t("instructions.dependencies"),
                    shown.info.dependencies.length ? (
                      <ul class="ids">
                        {shown.info.dependencies.map((each) => (
                          <li key={each}>
                            <a class="mono" href={textHref(each)}>
                              {each}
                            </a>
                          </li>
                        ))}
                      </ul>
                    ) : (
                      "–"
                    ),
                  ],
                ]}
              />
            </Card>
          </div>
        )}
      </Loaded>
    </Page>
  );
}
