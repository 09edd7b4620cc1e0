/** Conversations with agents: the list at the side, one of them open, and the field for the next message. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ChevronUp, MessageSquarePlus, Trash2 } from "lucide-preact";
import { useLocation } from "preact-iso";

import { api, data, once, Problem, type Schemas } from "../../api/client";
import { useAct, usePages, useRead } from "../../api/use";
import { ago } from "../../format";
import { BASE } from "../../pages";
import { t } from "../../text";
import { Button, IconButton, LinkButton, TextField } from "../../ui/controls";
import { Confirm, useToast } from "../../ui/dialog";
import { Empty, Loaded, Loading, ProblemNote, Time } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Composer } from "./composer";
import { Message, readTurn, TurnView } from "./turn";
import { Markdown } from "../../ui/markdown";

const HERE = `${BASE}/chat`;
const LISTED = 30;
/** Messages of a conversation that are read at a time. */
const PAGE = 20;
/** Turns of a conversation that are looked through for those that still run. */
const OPEN = 20;
const DEFAULT = "dialogue";

type Conversation = Schemas["Conversation"];

interface Line {
  id: string;
  text?: string;
  attached?: readonly string[];
  turn?: Schemas["Turn"] | undefined;
  /** What an agent said in a turn that is no longer kept. */
  said?: string;
}

/** Nothing for a turn that is no longer kept. */
function absent(error: unknown): undefined {
  if (error instanceof Problem && error.status === 404) return undefined;
  throw error;
}

/** Messages of a conversation, with their turns as far as these are kept. */
interface Part {
  messages: readonly Schemas["ConversationMessage"][];
  turns: Schemas["Turn"][];
  /** Whether there are messages ahead of these. */
  more: boolean;
}

const NOTHING: Part = { messages: [], turns: [], more: false };

function partOf(conversation: Conversation, read: (Schemas["Turn"] | undefined)[]): Part {
  const turns = [...(conversation.turns ?? []), ...read].filter((turn): turn is Schemas["Turn"] => !!turn);
  return { messages: conversation.messages, turns, more: !!conversation.more };
}

/** A page of a conversation; of its turns those that the answer had no room for are read one by one. */
async function readPage(id: string, before: number | undefined, signal?: AbortSignal): Promise<[Conversation, Part]> {
  const query = { limit: PAGE, turns: true, ...(before ? { before } : {}) };
  const found = await data(api.GET("/api/v1/conversations/{id}", { params: { path: { id }, query }, ...(signal ? { signal } : {}) }));
  const there = new Set((found.turns ?? []).map((turn) => turn.turn_id));
  const lacking = new Set(found.messages.map((message) => message.turn_id).filter((turn) => !there.has(turn)));
  return [found, partOf(found, await Promise.all([...lacking].map((turn) => readTurn(turn).catch(absent))))];
}

/** Messages in their order, each turn behind the message that began it. */
function linesOf(part: Part): Line[] {
  const turns = new Map(part.turns.map((turn) => [turn.turn_id, turn]));
  const shown = new Set<string>();
  const lines: Line[] = [];
  for (const message of part.messages) {
    const turn = turns.get(message.turn_id);
    if (message.role === "user") lines.push({ id: `${message.seq}`, text: message.text, attached: message.attached as readonly string[] });
    if (turn && !shown.has(message.turn_id)) {
      shown.add(message.turn_id);
      lines.push({ id: message.turn_id, turn });
    } else if (!turn && message.role !== "user") lines.push({ id: `${message.seq}`, said: message.text });
  }
  return lines;
}

/** What still runs, the oldest first: a turn's messages are kept when it ends, so that its message is told by the turn itself. */
function linesOfOpen(open: Schemas["Turn"][], part: Part): Line[] {
  const shown = new Set(part.messages.map((message) => message.turn_id));
  const late = open.filter((turn) => !shown.has(turn.turn_id)).reverse();
  return late.flatMap((turn) => [{ id: `m-${turn.turn_id}`, text: turn.opening ?? "" }, { id: turn.turn_id, turn }]);
}

/** Whether the browser was sent to the address with this question, and no page of the console handed it over.
 *
 * Anybody can write such a link: what it asks stands in the field, and is sent only by the person who reads it.
 */
function cameFromOutside(ask: string): boolean {
  const [loaded] = performance.getEntriesByType("navigation");
  return !!loaded && new URL(loaded.name).searchParams.get("ask") === ask;
}

function List(props: { open: string | undefined; round: number }) {
  const toast = useToast();
  const { route } = useLocation();
  const [{ q = "" }, change] = useParameters();
  const [leaving, setLeaving] = useState<Schemas["ConversationSummary"]>();
  const list = usePages(
    async (cursor, signal) => {
      const page = await data(api.GET("/api/v1/conversations", { params: { query: { limit: LISTED, ...(q ? { text: q } : {}), ...(cursor ? { cursor } : {}) } }, signal }));
      return { items: page.conversations, next: page.next ?? null };
    },
    [props.round, q],
  );
  const remove = useAct(async (id: string) => {
    await data(api.DELETE("/api/v1/conversations/{id}", { params: { path: { id } } }));
    setLeaving(undefined);
    toast(t("chat.deleted"));
    list.reload();
    if (id === props.open) route(HERE);
  });
  return (
    <nav class="conversations" aria-label={t("chat.conversations")}>
      <LinkButton kind="primary" href={HERE} icon={<MessageSquarePlus aria-hidden="true" />}>
        {t("chat.new")}
      </LinkButton>
      <TextField label={t("chat.search")} hidden type="search" maxLength={200} placeholder={t("chat.search")} value={q} onChange={(event) => change({ q: event.currentTarget.value.trim() })} />
      <Loaded of={list}>
        {(found) => (
          <>
            {q && (
              <p class="note" aria-live="polite">
                {t("chat.found", { count: found.length, more: !!list.more })}
              </p>
            )}
            <ul>
              {found.map((each) => (
                <li key={each.conversation_id}>
                  <a href={`${HERE}/${each.conversation_id}${q ? `?q=${encodeURIComponent(q)}` : ""}`} aria-current={each.conversation_id === props.open ? "page" : undefined}>
                    <span class="title">{each.title || t("chat.untitled")}</span>
                    {each.excerpt && <span class="excerpt">{`…${each.excerpt}…`}</span>}
                    <span class="note">
                      {each.agent} · <Time at={each.updated_at} show={ago} />
                    </span>
                  </a>
                  <IconButton label={t("chat.delete", { title: each.title || t("chat.untitled") })} icon={<Trash2 aria-hidden="true" />} onClick={() => setLeaving(each)} />
                </li>
              ))}
            </ul>
          </>
        )}
      </Loaded>
      {list.more && <Button onClick={list.more}>{t("shell.more")}</Button>}
      {leaving && (
        <Confirm
          title={t("chat.delete_title")}
          act={t("shell.delete")}
          busy={remove.running}
          problem={remove.problem}
          onClose={() => setLeaving(undefined)}
          onConfirm={() => void remove.run(leaving.conversation_id)}
        >
          <p>{t("chat.delete_text", { title: leaving.title || t("chat.untitled") })}</p>
        </Confirm>
      )}
    </nav>
  );
}

export default function Chat() {
  const { path, route } = useLocation();
  const [{ ask, agent: wanted }, change] = useParameters();
  const id = path.startsWith(`${HERE}/`) ? decodeURIComponent(path.slice(HERE.length + 1)) : undefined;
  const [part, setPart] = useState(NOTHING);
  /** What still runs, and what was sent since the conversation was opened. */
  const [added, setAdded] = useState<Line[]>([]);
  const lines = useMemo(() => [...linesOf(part), ...added], [part, added]);
  const [shown, setShown] = useState<string>();
  const [round, setRound] = useState(0);
  const [first, setFirst] = useState({ text: "" });
  const end = useRef<HTMLDivElement>(null);
  const box = useRef<HTMLDivElement>(null);
  /** Height of what is shown before earlier messages are put ahead of it. */
  const height = useRef(0);
  const agents = useRead((signal) => data(api.GET("/api/v1/agents", { signal })), []);
  const conversation = useRead(async (signal) => {
    if (!id || id === shown) return undefined;
    const [[found, read], { turns }] = await Promise.all([
      readPage(id, undefined, signal),
      data(api.GET("/api/v1/turns", { params: { query: { conversation_id: id, limit: OPEN } }, signal })),
    ]);
    return { found, read, open: linesOfOpen(turns.filter((turn) => !turn.ended_at), read) };
  }, [id]);
  const [agent, setAgent] = useState(wanted ?? DEFAULT);
  useEffect(() => {
    document.title = `${t("shell.chat")} · Phronesis`;
  }, []);
  useEffect(() => {
    if (!id) {
      setPart(NOTHING);
      setAdded([]);
      setShown(undefined);
    }
  }, [id]);
  useEffect(() => {
    if (!conversation.data || !id) return;
    setPart(conversation.data.read);
    setAdded(conversation.data.open);
    setAgent(conversation.data.found.agent);
    setShown(id);
  }, [conversation.data]);
  useEffect(() => {
    end.current?.scrollIntoView({ block: "end" });
  }, [lines.at(-1)?.id]);
  useLayoutEffect(() => {
    if (box.current && height.current) box.current.scrollTop += box.current.scrollHeight - height.current;
    height.current = 0;
  }, [part]);
  const earlier = useAct(async () => {
    const of = id as string;
    const [, read] = await readPage(of, part.messages[0]?.seq);
    height.current = box.current?.scrollHeight ?? 0;
    setPart((now) => (now === part ? { messages: [...read.messages, ...now.messages], turns: [...read.turns, ...now.turns], more: read.more } : now));
  });
  const sent = async (accepted: Schemas["AcceptedTurn"], text: string, files: string[]) => {
    const turn = await readTurn(accepted.turn_id);
    setAdded((before) => [...before, { id: `m-${accepted.turn_id}`, text, attached: files }, { id: accepted.turn_id, turn }]);
    setShown(accepted.conversation_id);
    setRound((before) => before + 1);
    if (id !== accepted.conversation_id) route(`${HERE}/${accepted.conversation_id}`, true);
  };
  const begin = useAct(async (text: string) => {
    const accepted = await data(api.POST("/api/v1/turns", { params: { header: once() }, body: { currentMessageText: text, agent } as Schemas["MessageGiven"] }));
    await sent(accepted, text, []);
  });
  useEffect(() => {
    if (!ask) return;
    change({ ask: undefined, agent: undefined });
    if (cameFromOutside(ask)) setFirst({ text: ask });
    else void begin.run(ask);
  }, [ask]);
  const retried = async (turn: string) => {
    const made = await readTurn(turn);
    setAdded((before) => [...before, { id: turn, turn: made }]);
  };
  const known = agents.data?.agents ?? [];
  const about = known.find((each) => each.name === agent)?.description;
  const current = !id || id === shown;
  const reading = conversation.loading && !current;
  const seen = current ? lines : [];
  return (
    <div class={id || seen.length ? "chat open" : "chat"}>
      <List open={id} round={round} />
      <section class="thread" aria-label={t("chat.messages")}>
        <h1 class="unseen">{t("shell.chat")}</h1>
        <div class="messages" role="log" ref={box}>
          {conversation.problem && !current && <ProblemNote problem={conversation.problem} retry={conversation.reload} />}
          {begin.problem && <ProblemNote problem={begin.problem} />}
          {reading && <Loading />}
          {seen.length === 0 && !id && (
            <Empty title={t("chat.begin")}>
              <div class="agent-cards">
                {known.map((each) => (
                  <button key={each.name} type="button" class="agent-card" aria-pressed={each.name === agent} onClick={() => setAgent(each.name)}>
                    <strong>{each.name}</strong>
                    <span>{each.description}</span>
                  </button>
                ))}
              </div>
            </Empty>
          )}
          {current && part.more && (
            <Button class="earlier" icon={<ChevronUp aria-hidden="true" />} busy={earlier.running} onClick={() => void earlier.run()}>
              {t("chat.earlier")}
            </Button>
          )}
          {earlier.problem && <ProblemNote problem={earlier.problem} />}
          {seen.map((line) =>
              line.turn ? (
                <TurnView key={line.id} first={line.turn} retried={(turn) => void retried(turn)} />
              ) : line.said !== undefined ? (
                <article key={line.id} class="message theirs">
                  <Markdown text={line.said} />
                </article>
              ) : (
                <Message key={line.id} text={line.text ?? ""} attached={line.attached} edit={() => setFirst({ text: line.text ?? "" })} />
              ),
          )}
          <div ref={end} />
        </div>
        {about && seen.length === 0 && <p class="note about">{about}</p>}
        <Composer conversation={id} agent={agent} agents={known} first={first} chosen={setAgent} sent={(turn, text, files) => void sent(turn, text, files)} />
      </section>
    </div>
  );
}
