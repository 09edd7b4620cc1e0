/** What the viewer thinks of an answer: of help or not, with a remark. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Pencil, ThumbsDown, ThumbsUp } from "lucide-preact";

import { api, data, type Schemas } from "../../api/client";
import { useAct } from "../../api/use";
import { t } from "../../text";
import { Button, IconButton, TextArea } from "../../ui/controls";
import { useToast } from "../../ui/dialog";
import { ProblemNote } from "../../ui/layout";

type Said = Schemas["Feedback"];

const LONGEST = 1000;

/** Tells what is thought of an answer, and takes it back; gives the two buttons and, apart from them, what belongs below. */
export function useFeedback(turn: Schemas["Turn"], changed: (said: Said | undefined) => void) {
  const toast = useToast();
  const [remark, setRemark] = useState<string>();
  const shown = useRef<HTMLFormElement>(null);
  useEffect(() => shown.current?.scrollIntoView({ block: "nearest" }), [remark === undefined]);
  const path = { id: turn.turn_id };
  const said = turn.feedback ?? undefined;
  const say = useAct(async (helpful: boolean, text: string) => {
    const rated = await data(api.PUT("/api/v1/turns/{id}/feedback", { params: { path }, body: { helpful, remark: text } }));
    changed(rated.feedback ?? undefined);
  });
  const back = useAct(async (before: Said) => {
    await data(api.DELETE("/api/v1/turns/{id}/feedback", { params: { path } }));
    changed(undefined);
    setRemark(undefined);
    toast(t("chat.feedback_gone"), () => void say.run(before.helpful, before.remark ?? ""));
  });
  const press = async (helpful: boolean) => {
    if (said?.helpful === helpful) return back.run(said);
    await say.run(helpful, "");
    setRemark("");
  };
  const save = async () => {
    if (said) await say.run(said.helpful, (remark ?? "").trim());
    setRemark(undefined);
    toast(t("chat.feedback_kept"));
  };
  const busy = say.running || back.running;
  const problem = say.problem ?? back.problem;
  return {
    buttons: (
      <span class="rating" role="group" aria-label={t("chat.feedback")}>
        <IconButton label={t("chat.helpful")} aria-pressed={said?.helpful === true} busy={busy} icon={<ThumbsUp aria-hidden="true" />} onClick={() => void press(true)} />
        <IconButton label={t("chat.unhelpful")} aria-pressed={said?.helpful === false} busy={busy} icon={<ThumbsDown aria-hidden="true" />} onClick={() => void press(false)} />
      </span>
    ),
    below: (
      <>
        {problem && <ProblemNote problem={problem} />}
        {said && remark !== undefined && (
          <form
            class="remark"
            ref={shown}
            onSubmit={(event) => {
              event.preventDefault();
              void save();
            }}
          >
            <TextArea label={t(said.helpful ? "chat.remark_good" : "chat.remark_bad")} hint={t("chat.remark_hint")} maxLength={LONGEST} rows={2} value={remark} onInput={(event) => setRemark(event.currentTarget.value)} />
            <div class="row">
              <Button kind="primary" type="submit" busy={busy}>
                {t("shell.save")}
              </Button>
              <Button kind="quiet" onClick={() => setRemark(undefined)}>
                {t("shell.close")}
              </Button>
            </div>
          </form>
        )}
        {said?.remark && remark === undefined && (
          <p class="note remark-said">
            {said.remark}
            <IconButton label={t("chat.remark_edit")} icon={<Pencil aria-hidden="true" />} onClick={() => setRemark(said.remark ?? "")} />
          </p>
        )}
      </>
    ),
  };
}
