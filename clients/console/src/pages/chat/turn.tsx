/** One turn: its progress while it runs, then its reply, its problem, or what it waits for. */

import { useEffect, useState } from "preact/hooks";
import { Pencil, RotateCcw, Square, Timer } from "lucide-preact";

import { api, data, follow, once, Problem, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { BASE } from "../../pages";
import { t, word } from "../../text";
import { Button, CopyButton, LinkButton } from "../../ui/controls";
import { ProblemNote } from "../../ui/layout";
import { Markdown } from "../../ui/markdown";
import { useFeedback } from "./feedback";
import { ReplyView } from "./reply";

type Turn = Schemas["Turn"];

const EVENTS = ["accepted", "phase", "waiting", "live", "restart", "text", "executive_summary", "ended", "done"];
const ENDED = ["completed", "failed", "cancelled"];

export function readTurn(id: string): Promise<Turn> {
  return data(api.GET("/api/v1/turns/{id}", { params: { path: { id } } }));
}

interface Said {
  phase?: string;
  detail?: { waiting_for?: string };
  text?: string;
  k?: number;
}

/** What a turn says while it goes on; calls `done` with its end. */
function useProgress(turn: Turn, done: (turn: Turn) => void) {
  const [phases, setPhases] = useState<string[]>([]);
  const [text, setText] = useState("");
  const open = !ENDED.includes(turn.status) && turn.status !== "parked";
  useEffect(() => {
    if (!open) return undefined;
    setText("");
    const close = follow(`/api/v1/turns/${turn.turn_id}/events`, EVENTS, (name, given) => {
      const said = given as Said;
      if (name === "phase" && said.phase) {
        const waits = said.phase === "waiting_for" ? t("chat.phase_waiting_for", { part: said.detail?.waiting_for ?? "" }) : word("chat", `phase_${said.phase}`);
        setPhases((before) => (before.at(-1) === waits ? before : [...before, waits]));
      }
      if (name === "restart") setText("");
      if (name === "live") setText((before) => before + (said.text ?? ""));
      if (name === "text") setText((before) => (said.k === 1 ? "" : before) + (said.text ?? ""));
      if (name === "waiting") void readTurn(turn.turn_id).then(done);
      if (name === "done") {
        close();
        done(given as Turn);
      }
    });
    return close;
  }, [turn.turn_id, turn.status]);
  return { phases, text, open };
}

function Waiting(props: { turn: Turn; changed: () => void }) {
  const id = props.turn.approval_id as string;
  const approval = useRead((signal) => data(api.GET("/api/v1/approvals/{id}", { params: { path: { id } }, signal })), [id]);
  const act = useAct(async (decision: "approve" | "refuse") => {
    await data(api.POST("/api/v1/approvals/{id}", { params: { path: { id }, header: once() }, body: { decision, note: "", scope: "once" } }));
    props.changed();
  });
  if (!approval.data) return approval.problem ? <ProblemNote problem={approval.problem} retry={approval.reload} /> : null;
  const asked = approval.data;
  return (
    <div class="asks" role="group" aria-label={t("chat.waits")}>
      <p>
        <strong>{t("chat.waits")}</strong>
      </p>
      <p>{asked.reason}</p>
      <pre>{`${asked.tool}\n${JSON.stringify(asked.arguments, null, 2)}`}</pre>
      <div class="row">
        <Button kind="primary" busy={act.running} onClick={() => void act.run("approve")}>
          {t("chat.approve")}
        </Button>
        <Button busy={act.running} onClick={() => void act.run("refuse")}>
          {t("chat.decline")}
        </Button>
        <LinkButton kind="quiet" href={`${BASE}/work/approvals/${id}`}>
          {t("shell.details")}
        </LinkButton>
      </div>
      {act.problem && <ProblemNote problem={act.problem} />}
    </div>
  );
}

/** A message of the user, with what can be done with it. */
export function Message(props: { text: string; attached?: readonly string[] | undefined; edit?: () => void }) {
  return (
    <article class="message mine">
      {props.text && <p class="said">{props.text}</p>}
      {(props.attached ?? []).map((name) => (
        <p key={name} class="note">
          {name}
        </p>
      ))}
      {props.edit && (
        <Button class="edit" kind="quiet" icon={<Pencil aria-hidden="true" />} aria-label={t("chat.edit_message")} onClick={props.edit}>
          {t("shell.edit")}
        </Button>
      )}
    </article>
  );
}

export function TurnView(props: { first: Turn; retried: (id: string) => void }) {
  const [turn, setTurn] = useState(props.first);
  const { phases, text, open } = useProgress(turn, setTurn);
  const stop = useAct(async () => setTurn(await data(api.DELETE("/api/v1/turns/{id}", { params: { path: { id: turn.turn_id } } }))));
  const retry = useAct(async () => {
    const made = await data(api.POST("/api/v1/turns/{id}/retry", { params: { path: { id: turn.turn_id }, header: once() } }));
    props.retried(made.turn_id);
  });
  const feedback = useFeedback(turn, (said) => setTurn((now) => ({ ...now, feedback: said ?? null })));
  const problem = turn.problem ?? undefined;
  const acts = stop.problem ?? retry.problem;
  return (
    <article class="message theirs" data-turn={turn.turn_id} data-status={turn.status} aria-busy={open}>
      <p class="agent">{turn.agent}</p>
      {open && turn.status !== "waiting" && (
        <div class="progress" role="status">
          <p class="phase">{phases.at(-1) ?? t("chat.phase_accepted")}</p>
          {text && <Markdown text={text} />}
        </div>
      )}
      {turn.status === "waiting" && turn.approval_id && <Waiting turn={turn} changed={() => void readTurn(turn.turn_id).then(setTurn)} />}
      {turn.status === "parked" && <p>{t("chat.parked", { part: turn.waiting_for ?? "" })}</p>}
      {turn.reply && <ReplyView reply={turn.reply} confidence={turn.trace?.confidence} />}
      {problem && <ProblemNote problem={new Problem(problem.status, problem.code, problem.detail, problem.field ?? undefined, problem.retry_after ?? undefined)} />}
      {turn.status === "cancelled" && <p class="note">{t("chat.stopped")}</p>}
      {acts && <ProblemNote problem={acts} />}
      <div class="turn-actions">
        {open && (
          <Button icon={<Square aria-hidden="true" />} busy={stop.running} onClick={() => void stop.run()}>
            {t("chat.stop")}
          </Button>
        )}
        {(turn.status === "failed" || turn.status === "cancelled") && (
          <Button icon={<RotateCcw aria-hidden="true" />} busy={retry.running} onClick={() => void retry.run()}>
            {t("shell.retry")}
          </Button>
        )}
        {turn.reply && feedback.buttons}
        {turn.reply && <CopyButton text={turn.reply.analysis ? turn.reply.analysis.answer : turn.reply.user_response} />}
        {!open && (
          <LinkButton kind="quiet" icon={<Timer aria-hidden="true" />} href={`${BASE}/traces/${turn.turn_id}`}>
            {t("chat.trace")}
          </LinkButton>
        )}
      </div>
      {turn.reply && feedback.below}
    </article>
  );
}
