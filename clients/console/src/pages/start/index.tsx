/** What runs and how it feels, what waits for the viewer, and questions that one press asks. */

import { ArrowRight, CircleCheck, CircleX } from "lucide-preact";

import { api, callTool, data, Problem, type Schemas } from "../../api/client";
import { type Read, useRead } from "../../api/use";
import { ago, dollars, duration, percent, short } from "../../format";
import { BASE } from "../../pages";
import { useMe } from "../../session";
import { language, t, word } from "../../text";
import { CopyButton, LinkButton } from "../../ui/controls";
import { Badge, Card, Loaded, Page, Stat, Time } from "../../ui/layout";

/** Seconds between looks while the page is seen. */
const OFTEN = 15;
const TURNS = 100;
const SHOWN = 5;
const EXAMPLES = 6;

type Turn = Schemas["Turn"];

interface Vocabulary {
  ontology?: { types: { name: string; words?: Record<string, string[]> }[] };
  names?: { type: string }[];
}

function Health() {
  const ready = useRead(async (signal) => (await (await fetch("/health/ready", { signal })).json()) as { ready: boolean; down: string[] }, [], OFTEN);
  return (
    <Loaded of={ready} lines={1}>
      {(found) =>
        found.ready ? (
          <Badge tone="good">
            <CircleCheck aria-hidden="true" /> {t("home.all_up")}
          </Badge>
        ) : (
          <Badge tone="bad">
            <CircleX aria-hidden="true" /> {t("home.down", { parts: found.down.join(", ") })}
          </Badge>
        )
      }
    </Loaded>
  );
}

function seconds(turn: Turn): number | undefined {
  return turn.ended_at ? (new Date(turn.ended_at).getTime() - new Date(turn.created_at).getTime()) / 1000 : undefined;
}

function middle(values: number[]): number | undefined {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}

function Figures(props: { turns: Turn[] }) {
  const usage = useRead((signal) => data(api.GET("/api/v1/usage", { signal })), []);
  const ended = props.turns.filter((turn) => turn.ended_at);
  const good = ended.filter((turn) => turn.status === "completed").length;
  const half = middle(ended.map(seconds).filter((one): one is number => one !== undefined));
  const sums = usage.data?.sums ?? [];
  const tokens = sums.reduce((sum, one) => sum + one.input_tokens + one.output_tokens, 0);
  const cost = sums.reduce((sum, one) => sum + one.cost_usd, 0);
  return (
    <div class="figures">
      <Stat label={t("home.turns")} value={short(props.turns.length)} note={ended.length ? t("home.completed", { share: percent(good / ended.length) }) : t("home.no_turns")} />
      <Stat label={t("home.time")} value={half === undefined ? "—" : duration(half)} note={t("home.time_note")} />
      <Stat label={t("home.tokens")} value={short(tokens)} note={t("home.this_month")} />
      <Stat label={t("home.cost")} value={dollars(cost)} note={t("home.this_month")} />
    </div>
  );
}

interface Waiting {
  id: string;
  href: string;
  title: string;
  agent: string;
  at: string;
}

/** Calls that wait for consent, and tasks that ask their owner something; what has waited longest comes first. */
async function readWaiting(signal: AbortSignal): Promise<Waiting[]> {
  const [{ approvals }, { tasks }] = await Promise.all([
    data(api.GET("/api/v1/approvals", { params: { query: { status: "pending" } }, signal })),
    data(api.GET("/api/v1/tasks", { params: { query: { status: "waiting", limit: SHOWN } }, signal })),
  ]);
  // A list of tasks does not tell what each waits for.
  const waiting = await Promise.all(tasks.map(({ task_id: id }) => data(api.GET("/api/v1/tasks/{id}", { params: { path: { id } }, signal }))));
  const calls = approvals.map((each) => ({ id: each.approval_id, href: `${BASE}/work/approvals/${each.approval_id}`, title: each.tool, agent: each.agent, at: each.created_at }));
  const asking = waiting.flatMap((task) => {
    const wait = task.waiting;
    if (wait?.kind !== "person") return [];
    return [{ id: task.task_id, href: `${BASE}/work/tasks/${task.task_id}`, title: wait.question || task.goal, agent: task.agent, at: wait.since }];
  });
  return [...calls, ...asking].sort((one, other) => one.at.localeCompare(other.at));
}

function Waits() {
  const waiting = useRead(readWaiting, [], OFTEN);
  return (
    <Card title={t("home.waits")} actions={<LinkButton kind="quiet" href={`${BASE}/work/approvals`}>{t("home.inbox")}</LinkButton>}>
      <Loaded of={waiting} lines={2}>
        {(found) =>
          found.length === 0 ? (
            <p class="note">{t("home.nothing_waits")}</p>
          ) : (
            <ul class="plain-list">
              {found.slice(0, SHOWN).map((each) => (
                <li key={each.id}>
                  <a href={each.href}>{each.title}</a>
                  <span class="note">
                    {each.agent} · <Time at={each.at} show={ago} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}

function Recent() {
  const list = useRead((signal) => data(api.GET("/api/v1/conversations", { params: { query: { limit: SHOWN } }, signal })), []);
  return (
    <Card title={t("home.recent")} actions={<LinkButton kind="quiet" href={`${BASE}/chat`}>{t("home.all_conversations")}</LinkButton>}>
      <Loaded of={list} lines={2}>
        {(found) =>
          found.conversations.length === 0 ? (
            <p class="note">{t("home.no_conversations")}</p>
          ) : (
            <ul class="plain-list">
              {found.conversations.map((each) => (
                <li key={each.conversation_id}>
                  <a href={`${BASE}/chat/${each.conversation_id}`}>{each.title || t("home.untitled")}</a>
                  <span class="note">
                    {each.agent} · <Time at={each.updated_at} show={ago} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}

/** Questions about what there is most of, by the words that the tenant's own ontology has for it. */
function questions(vocabulary: Vocabulary): { agent: string; text: string }[] {
  const counts = new Map<string, number>();
  for (const { type } of vocabulary.names ?? []) counts.set(type, (counts.get(type) ?? 0) + 1);
  const most = [...counts].sort((one, other) => other[1] - one[1]).map(([type]) => type);
  const plurals = most.slice(0, 2).map((name) => {
    const words = vocabulary.ontology?.types.find((type) => type.name === name)?.words;
    const said = words?.[language()] ?? words?.["en"];
    return said?.[1] ?? said?.[0] ?? name;
  });
  const ofData = plurals.flatMap((plural) => [t("home.ask_count", { plural }), t("home.ask_list", { plural })]);
  return [...ofData, t("home.ask_can"), t("home.ask_know")].slice(0, EXAMPLES).map((text) => ({ agent: "dialogue", text }));
}

/** No words of the tenant's own where they cannot be read: the questions that need none are shown all the same. */
function unread(error: unknown): Vocabulary {
  if (error instanceof Problem) return {};
  throw error;
}

function Examples(props: { of: Read<Vocabulary> }) {
  return (
    <Card title={t("home.try")}>
      <Loaded of={props.of} lines={3}>
        {(found) => (
          <ul class="examples">
            {questions(found).map((each) => (
              <li key={each.text}>
                <a href={`${BASE}/chat?${new URLSearchParams({ agent: each.agent, ask: each.text })}`}>
                  {each.text}
                  <ArrowRight aria-hidden="true" />
                </a>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </Card>
  );
}

function Command(props: { label: string; text: string }) {
  return (
    <div class="command">
      <p>{props.label}</p>
      <div class="command-line">
        <pre>{props.text}</pre>
        <CopyButton text={props.text} />
      </div>
    </div>
  );
}

/** Ways in, with this gateway's address, for who has used none of them yet. */
function Connect() {
  const here = location.origin;
  return (
    <Card title={t("home.connect")}>
      <Command label={t("home.connect_sample")} text="phronesis load portfolio" />
      <Command label={t("home.connect_mcp")} text={`claude mcp add --transport http phronesis ${here}/mcp --header "Authorization: Bearer $PHRONESIS_KEY"`} />
      <Command
        label={t("home.connect_openai")}
        text={`curl ${here}/v1/chat/completions -H "Authorization: Bearer $PHRONESIS_KEY" -H "Content-Type: application/json" -d '{"model": "dialogue", "messages": [{"role": "user", "content": "Hello"}]}'`}
      />
      <Command label={t("home.connect_python")} text={`from phronesis import Phronesis\n\nwith Phronesis("${here}", key) as client:\n    print(client.memory.search("...").memories)`} />
      <p>
        <LinkButton href={`${BASE}/settings/keys`}>{t("home.make_key")}</LinkButton>
      </p>
    </Card>
  );
}

export default function Home() {
  const me = useMe();
  const turns = useRead((signal) => data(api.GET("/api/v1/turns", { params: { query: { limit: TURNS } }, signal })), [], OFTEN);
  const words = useRead(() => callTool<Vocabulary>("twin_vocabulary").catch(unread), []);
  const empty = turns.data?.turns.length === 0 && words.data?.names?.length === 0;
  return (
    <Page title={t("home.title", { user: me.user })} actions={<Health />}>
      <Loaded of={turns} lines={2}>
        {(found) => (
          <>
            <Figures turns={found.turns} />
            <div class="home-columns">
              <div class="stack">
                <Examples of={words} />
                <Recent />
              </div>
              <div class="stack">
                <Waits />
                <Card title={t("home.last_turns")} actions={<LinkButton kind="quiet" href={`${BASE}/traces`}>{t("home.all_turns")}</LinkButton>}>
                  {found.turns.length === 0 ? (
                    <p class="note">{t("home.no_turns")}</p>
                  ) : (
                    <ul class="plain-list">
                      {found.turns.slice(0, SHOWN).map((turn) => (
                        <li key={turn.turn_id}>
                          <a href={`${BASE}/traces/${turn.turn_id}`}>{turn.opening || turn.agent}</a>
                          <span class="note">
                            <Time at={turn.created_at} show={ago} /> · {word("home", `status_${turn.status}`).replace(/^status /, "")}
                            {seconds(turn) === undefined ? "" : ` · ${duration(seconds(turn) as number)}`}
                          </span>
                        </li>
                      ))}
                    </ul>
                  )}
                </Card>
              </div>
            </div>
            {empty && <Connect />}
          </>
        )}
      </Loaded>
    </Page>
  );
}
