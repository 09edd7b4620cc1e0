/** Conversations with agents: the list at the side, one of them open, and the field for the next message. */

import { useEffect, useRef, useState } from "preact/hooks";
import { MessageSquarePlus, Trash2 } from "lucide-preact";
import { useLocation } from "preact-iso";

import { api, data, once, Problem, type Schemas } from "../../api/client";
import { useAct, usePages, useRead } from "../../api/use";
import { ago } from "../../format";
import { BASE } from "../../pages";
import { t } from "../../text";
import { Button, IconButton, LinkButton } from "../../ui/controls";
import { Confirm, useToast } from "../../ui/dialog";
import { Empty, Loaded, Loading, ProblemNote, Time } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Composer } from "./composer";
import { Message, readTurn, TurnView } from "./turn";
import { Markdown } from "../../ui/markdown";

const HERE = `${BASE}/chat`;
const LISTED = 30;
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

/** The messages of a conversation in their order, each turn behind the message that began it. */
async function readLines(conversation: Conversation, open: Schemas["Turn"][]): Promise<Line[]> {
  const ids = [...new Set(conversation.messages.map((message) => message.turn_id))];
  const found = await Promise.all(ids.map((id) => readTurn(id).catch(absent)));
  const turns = new Map(ids.map((id, at) => [id, found[at]]));
  const shown = new Set<string>();
  const lines: Line[] = [];
  for (const message of conversation.messages) {
    const turn = turns.get(message.turn_id);
    if (message.role === "user") lines.push({ id: `${message.seq}`, text: message.text, attached: message.attached as readonly string[] });
    if (turn && !shown.has(message.turn_id)) {
      shown.add(message.turn_id);
      lines.push({ id: message.turn_id, turn });
    } else if (!turn && message.role !== "user") lines.push({ id: `${message.seq}`, said: message.text });
  }
  // A turn's messages are kept when it ends; what still runs is told by the turn itself.
  const late = open.filter((turn) => !shown.has(turn.turn_id)).reverse();
  return [...lines, ...late.flatMap((turn) => [{ id: `m-${turn.turn_id}`, text: turn.opening ?? "" }, { id: turn.turn_id, turn }])];
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
  const [leaving, setLeaving] = useState<Schemas["ConversationSummary"]>();
  const list = usePages(
    async (cursor, signal) => {
      const page = await data(api.GET("/api/v1/conversations", { params: { query: { limit: LISTED, ...(cursor ? { cursor } : {}) } }, signal }));
      return { items: page.conversations, next: page.next ?? null };
    },
    [props.round],
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
      <Loaded of={list}>
        {(found) => (
          <ul>
            {found.map((each) => (
              <li key={each.conversation_id}>
                <a href={`${HERE}/${each.conversation_id}`} aria-current={each.conversation_id === props.open ? "page" : undefined}>
                  <span class="title">{each.title || t("chat.untitled")}</span>
                  <span class="note">
                    {each.agent} · <Time at={each.updated_at} show={ago} />
                  </span>
                </a>
                <IconButton label={t("chat.delete", { title: each.title || t("chat.untitled") })} icon={<Trash2 aria-hidden="true" />} onClick={() => setLeaving(each)} />
              </li>
            ))}
          </ul>
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
  const [lines, setLines] = useState<Line[]>([]);
  const [shown, setShown] = useState<string>();
  const [round, setRound] = useState(0);
  const [first, setFirst] = useState({ text: "" });
  const end = useRef<HTMLDivElement>(null);
  const agents = useRead((signal) => data(api.GET("/api/v1/agents", { signal })), []);
  const conversation = useRead(async (signal) => {
    if (!id || id === shown) return undefined;
    const [found, { turns }] = await Promise.all([
      data(api.GET("/api/v1/conversations/{id}", { params: { path: { id } }, signal })),
      data(api.GET("/api/v1/turns", { params: { query: { conversation_id: id, limit: OPEN } }, signal })),
    ]);
    return { found, lines: await readLines(found, turns.filter((turn) => !turn.ended_at)) };
  }, [id]);
  const [agent, setAgent] = useState(wanted ?? DEFAULT);
  useEffect(() => {
    document.title = `${t("shell.chat")} · Phronesis`;
  }, []);
  useEffect(() => {
    if (!id) {
      setLines([]);
      setShown(undefined);
    }
  }, [id]);
  useEffect(() => {
    if (!conversation.data || !id) return;
    setLines(conversation.data.lines);
    setAgent(conversation.data.found.agent);
    setShown(id);
  }, [conversation.data]);
  useEffect(() => {
    end.current?.scrollIntoView({ block: "end" });
  }, [lines.length]);
  const sent = async (accepted: Schemas["AcceptedTurn"], text: string, files: string[]) => {
    const turn = await readTurn(accepted.turn_id);
    setLines((before) => [...before, { id: `m-${accepted.turn_id}`, text, attached: files }, { id: accepted.turn_id, turn }]);
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
    setLines((before) => [...before, { id: turn, turn: made }]);
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
        <div class="messages" role="log">
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
