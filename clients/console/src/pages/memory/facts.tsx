/** What is known of the viewer as single facts: those that hold, those that no longer do, and what took their place. */

import { MessageSquareText } from "lucide-preact";
import { useState } from "preact/hooks";

import { api, callTool, data, once, type Schemas } from "../../api/client";
import { useAct, usePages, useRead } from "../../api/use";
import { percent } from "../../format";
import { useMe } from "../../session";
import { t, word } from "../../text";
import { Button, Select, TextArea, TextField } from "../../ui/controls";
import { Dialog, useToast } from "../../ui/dialog";
import { Badge, Card, Empty, Facts as Rows, Loaded, ProblemNote } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { Forget } from "./one";
import { type Act, mayWrite, OnePage, Origins, partsOf, ROOT, Score, SearchForm, When } from "./parts";

interface Fact {
  id: string;
  kind: string;
  subject: string;
  predicate: string;
  object: string;
  text: string;
  held: boolean;
  valid_from: string;
  valid_to?: string | null;
  recorded_at: string;
  superseded_by?: string | null;
  confidence: number;
  trust: number;
  origin: string;
  sources: { turn_id?: string | null; conversation_id?: string | null; origin: string; said_at: string }[];
  labels: Schemas["Label"][];
}

interface Recalled {
  fact: Fact;
  score: number;
  why: { vector?: number | null; text?: number | null; words: string[]; relevance: number; recency: number; trust: number; confidence: number; asked: boolean };
}

const PAGE = 50;
/** Parts of a score, in the order in which they are shown. */
const SCORED = ["relevance", "vector", "text", "recency", "trust", "confidence"];

export function Facts() {
  const [chosen, change] = useParameters();
  const [subject, setSubject] = useState(chosen.subject ?? "");
  return (
    <>
      <SearchForm hint={t("memory.fact_query_hint")} others={() => ({ subject: subject.trim() })}>
        {!chosen.q && (
          <div class="filters">
            <TextField
              label={t("memory.subject")}
              value={subject}
              onInput={(event) => setSubject(event.currentTarget.value)}
              onChange={(event) => change({ subject: event.currentTarget.value.trim() })}
            />
            <Select
              label={t("memory.held")}
              value={chosen.held ?? ""}
              options={[
                { value: "", label: t("memory.held_only") },
                { value: "all", label: t("memory.held_all") },
              ]}
              onChange={(event) => change({ held: event.currentTarget.value })}
            />
          </div>
        )}
      </SearchForm>
      {chosen.q ? <Recall query={chosen.q} /> : <All subject={chosen.subject} superseded={chosen.held === "all"} />}
    </>
  );
}

function All(props: { subject: string | undefined; superseded: boolean }) {
  const { subject, superseded } = props;
  const pages = usePages(
    async (cursor, signal) => {
      const offset = Number(cursor ?? 0);
      const given = { limit: PAGE, offset, superseded, ...(subject && { subject }) };
      const found = await callTool<{ facts: Fact[]; total: number }>("facts.list", given, signal);
      return { items: found.facts, next: offset + PAGE < found.total ? String(offset + PAGE) : null };
    },
    [subject, superseded],
  );
  return (
    <Card>
      <Loaded of={pages} lines={6}>
        {(facts) =>
          facts.length ? (
            <Table
              label={t("memory.tab_facts")}
              rows={facts}
              id={(fact) => fact.id}
              more={pages.more}
              columns={[
                { id: "text", label: t("memory.fact"), show: (fact) => <a href={`${ROOT}/facts/${fact.id}`}>{fact.text}</a>, by: (fact) => fact.text },
                { id: "held", label: t("memory.state"), show: (fact) => <Held fact={fact} />, by: (fact) => String(fact.held) },
                { id: "origin", label: t("memory.origin"), show: (fact) => word("memory", `said_${fact.origin}`), by: (fact) => fact.origin },
                { id: "since", label: t("memory.holds_since"), show: (fact) => <When at={fact.valid_from} />, by: (fact) => fact.valid_from },
                { id: "confidence", label: t("memory.confidence"), show: (fact) => percent(fact.confidence), by: (fact) => fact.confidence, number: true },
              ]}
            />
          ) : (
            <Empty title={t("memory.no_facts")}>
              <p>{t("memory.no_facts_hint")}</p>
            </Empty>
          )
        }
      </Loaded>
    </Card>
  );
}

function Held(props: { fact: Fact }) {
  return <Badge tone={props.fact.held ? "good" : "plain"}>{t(props.fact.held ? "memory.holds" : "memory.superseded")}</Badge>;
}

function Recall(props: { query: string }) {
  const found = useRead((signal) => callTool<{ facts: Recalled[]; degraded: string[] }>("facts.recall", { query: props.query, limit: 20 }, signal), [props.query]);
  return (
    <Card class="memory-results">
      <Loaded of={found}>
        {(answer) => {
          const best = Math.max(0, ...answer.facts.map((each) => each.why.text ?? 0));
          return (
            <>
              <h2 aria-live="polite">{t("memory.found_facts", { count: answer.facts.length })}</h2>
              {answer.facts.length === 0 && <Empty title={t("memory.nothing_found")} />}
              <ol class="memory-list">
                {answer.facts.map(({ fact, score, why }) => (
                  <li key={fact.id}>
                    <a class="memory-text" href={`${ROOT}/facts/${fact.id}`}>
                      {fact.text}
                    </a>
                    <Score total={percent(score)} parts={partsOf(score, why, SCORED, best)}>
                      {why.words.length > 0 && <p class="note">{t("memory.shared_words", { words: why.words.join(", ") })}</p>}
                      {why.asked && <p class="note">{t("memory.asked")}</p>}
                    </Score>
                  </li>
                ))}
              </ol>
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}

const MOST = 2000;

/** All facts that were ever known under the subject and predicate of one, the newest first. */
async function chainOf(id: string, signal: AbortSignal): Promise<{ fact: Fact | undefined; chain: Fact[] }> {
  const all: Fact[] = [];
  let total = 1;
  while (all.length < Math.min(total, MOST)) {
    const page = await callTool<{ facts: Fact[]; total: number }>("facts.list", { superseded: true, limit: 200, offset: all.length }, signal);
    if (!page.facts.length) break;
    all.push(...page.facts);
    total = page.total;
  }
  const fact = all.find((each) => each.id === id);
  const chain = all.filter((each) => fact && each.subject === fact.subject && each.predicate === fact.predicate);
  return { fact, chain: chain.sort((one, other) => other.valid_from.localeCompare(one.valid_from)) };
}

export function FactPage(props: { id: string }) {
  const me = useMe();
  const [open, setOpen] = useState<Act>();
  const found = useRead((signal) => chainOf(props.id, signal), [props.id]);
  const fact = found.data?.fact;
  return (
    <OnePage
      title={t("memory.fact")}
      back={{ href: `${ROOT}/facts`, label: t("memory.back_facts") }}
      may={!!fact && mayWrite(me)}
      correct={<MessageSquareText aria-hidden="true" />}
      open={setOpen}
    >
      <Loaded of={found}>
        {({ fact: one, chain }) =>
          one ? (
            <>
              <Card>
                <p class="memory-whole">{one.text}</p>
                <Rows
                  of={[
                    [t("memory.state"), <Held fact={one} />],
                    [t("memory.subject"), one.subject],
                    [t("memory.predicate"), one.predicate],
                    [t("memory.object"), one.object],
                    [t("memory.origin"), word("memory", `said_${one.origin}`)],
                    [t("memory.formed_of"), <Origins labels={one.labels} />],
                    [t("memory.confidence"), percent(one.confidence)],
                    [t("memory.trust"), percent(one.trust)],
                    [t("memory.sources"), <Sources of={one} />],
                  ]}
                />
              </Card>
              <Card title={t("memory.timeline")}>
                <p class="note">{t("memory.timeline_hint", { subject: one.subject, predicate: one.predicate })}</p>
                <ol class="timeline">
                  {chain.map((each) => (
                    <li key={each.id} class={each.held ? "now" : undefined} aria-current={each.id === one.id ? "true" : undefined}>
                      <p class="memory-line">
                        <Held fact={each} />
                        <When at={each.valid_from} />
                        {each.valid_to && (
                          <>
                            – <When at={each.valid_to} />
                          </>
                        )}
                      </p>
                      <a href={`${ROOT}/facts/${each.id}`}>{each.text}</a>
                      {each.superseded_by && <p class="note">{supersededBy(each, chain)}</p>}
                    </li>
                  ))}
                </ol>
              </Card>
            </>
          ) : (
            <Empty title={t("memory.no_such_fact")} />
          )
        }
      </Loaded>
      {fact && open === "correct" && <Tell fact={fact} onClose={() => setOpen(undefined)} onDone={found.reload} />}
      {fact && open === "forget" && <Forget ids={[fact.id]} text={fact.text} onClose={() => setOpen(undefined)} />}
    </OnePage>
  );
}

function supersededBy(fact: Fact, chain: Fact[]): string {
  const by = chain.find((each) => each.id === fact.superseded_by);
  if (fact.valid_to === fact.valid_from) return t("memory.never_held", { by: by?.text ?? "" });
  return t("memory.superseded_by", { by: by?.text ?? "" });
}

function Sources(props: { of: Fact }) {
  return (
    <ul class="memory-metadata">
      {props.of.sources.map((source) => (
        <li key={`${source.turn_id}${source.said_at}`}>
          {word("memory", `said_${source.origin}`)} <When at={source.said_at} />
          {source.turn_id && (
            <>
              {" "}
              <a href={`/console/traces/${source.turn_id}`}>{t("memory.its_turn")}</a>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

/** A fact is corrected as it was made: somebody says so. What they say has the same trust, and takes its place. */
function Tell(props: { fact: Fact; onClose: () => void; onDone: () => void }) {
  const toast = useToast();
  const [text, setText] = useState("");
  const [key] = useState(once);
  const act = useAct(async () => {
    const answer = await data(
      api.POST("/api/v1/conversations/messages", { body: { agent: "dialogue", currentMessageText: text }, params: { header: { ...key, Prefer: "wait=60" } } }),
    );
    toast("user_response" in answer ? answer.user_response : t("memory.told"));
    props.onDone();
    props.onClose();
  });
  return (
    <Dialog
      title={t("memory.correct")}
      onClose={props.onClose}
      actions={
        <>
          <Button onClick={props.onClose}>{t("shell.cancel")}</Button>
          <Button kind="primary" busy={act.running} disabled={!text.trim()} onClick={() => void act.run()}>
            {t("memory.tell_it")}
          </Button>
        </>
      }
    >
      <blockquote class="memory-quote">{props.fact.text}</blockquote>
      <TextArea label={t("memory.tell")} hint={t("memory.tell_hint")} rows={3} value={text} autofocus onInput={(event) => setText(event.currentTarget.value)} />
      {act.problem && <ProblemNote problem={act.problem} />}
    </Dialog>
  );
}
