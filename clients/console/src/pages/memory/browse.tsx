/** All memories, page by page; or those that answer a question, with what gave each its score. */

import { useEffect, useState } from "preact/hooks";

import { api, data } from "../../api/client";
import { usePages, useRead } from "../../api/use";
import { number } from "../../format";
import { useMe } from "../../session";
import { t, word } from "../../text";
import { Button, Select, TextField } from "../../ui/controls";
import { Card, Empty, Loaded } from "../../ui/layout";
import { type Parameters, useParameters } from "../../ui/parameters";
import { asUser, dayStart, Kind, type Memory, Origins, partsOf, ROOT, Score, SearchForm, When } from "./parts";

const KINDS = ["fact", "note", "concept", "message", "episode"] as const;
type KindName = (typeof KINDS)[number];

function bounds({ since, until, conversation }: Parameters) {
  return {
    ...(conversation && { conversation_id: conversation }),
    ...(since && { since: dayStart(since) }),
    ...(until && { until: dayStart(until, 1) }),
  };
}

export function Browse() {
  const [chosen] = useParameters();
  return (
    <>
      <Filters />
      {chosen.q ? <Results of={chosen} /> : <All of={chosen} />}
    </>
  );
}

function Filters() {
  const [chosen, change] = useParameters();
  const [conversation, setConversation] = useState(chosen.conversation ?? "");
  const me = useMe();
  useEffect(() => setConversation(chosen.conversation ?? ""), [chosen.conversation]);
  return (
    <SearchForm hint={t("memory.query_hint")} others={() => ({ conversation: conversation.trim() })}>
      <div class="filters">
        <Select
          label={t("memory.kind")}
          value={chosen.kind ?? ""}
          options={[{ value: "", label: t("shell.all") }, ...KINDS.map((kind) => ({ value: kind, label: word("memory", `kind_${kind}`) }))]}
          onChange={(event) => change({ kind: event.currentTarget.value })}
        />
        <TextField label={t("memory.since")} type="date" value={chosen.since ?? ""} onChange={(event) => change({ since: event.currentTarget.value })} />
        <TextField label={t("memory.until")} type="date" value={chosen.until ?? ""} onChange={(event) => change({ until: event.currentTarget.value })} />
        <TextField
          label={t("memory.conversation")}
          value={conversation}
          autocomplete="off"
          onInput={(event) => setConversation(event.currentTarget.value)}
          onChange={(event) => change({ conversation: event.currentTarget.value.trim() })}
        />
        {me.scopes.includes("act_for_users") && (
          <TextField
            label={t("memory.user")}
            value={chosen.user ?? ""}
            placeholder={me.user}
            autocomplete="off"
            onChange={(event) => change({ user: event.currentTarget.value.trim() })}
          />
        )}
        {Object.values(chosen).some(Boolean) && (
          <Button kind="quiet" onClick={() => change({ q: "", kind: "", since: "", until: "", conversation: "", user: "" })}>
            {t("memory.clear")}
          </Button>
        )}
      </div>
    </SearchForm>
  );
}

function All(props: { of: Parameters }) {
  const { kind, since, until, conversation, user } = props.of;
  const pages = usePages(
    async (cursor, signal) => {
      const query = { limit: 30, ...(cursor && { cursor }), ...(kind && { kind: [kind as KindName] }), ...bounds(props.of) };
      const page = await data(api.GET("/api/v1/memory", { params: { query }, signal, ...asUser(user) }));
      return { items: page.memories, next: page.next ?? null };
    },
    [kind, since, until, conversation, user],
  );
  const filtered = !!(kind || since || until || conversation);
  return (
    <Card class="memory-results">
      <Loaded of={pages} lines={8}>
        {(memories) =>
          memories.length ? (
            <>
              <ul class="memory-list">
                {memories.map((memory) => (
                  <li key={memory.id}>
                    <Row memory={memory} />
                  </li>
                ))}
              </ul>
              {pages.more && <Button onClick={pages.more}>{t("shell.more")}</Button>}
            </>
          ) : (
            <Empty title={t(filtered ? "memory.none_fit" : "memory.empty")}>
              <p>{t(filtered ? "memory.none_fit_hint" : "memory.empty_hint")}</p>
            </Empty>
          )
        }
      </Loaded>
    </Card>
  );
}

/** Where a memory's page is; a fact that was learnt has one of its own. */
function pageOf(memory: Memory, user: string | undefined): string {
  if (user) return `${ROOT}/${memory.id}?user=${encodeURIComponent(user)}`;
  const learnt = memory.kind === "fact" && "trust" in (memory.metadata ?? {});
  return learnt && memory.external_id ? `${ROOT}/facts/${memory.external_id}` : `${ROOT}/${memory.id}`;
}

function Row(props: { memory: Memory }) {
  const { memory } = props;
  const [{ user }] = useParameters();
  return (
    <article class="memory-row">
      <a class="memory-text" href={pageOf(memory, user)}>
        {memory.text}
      </a>
      <p class="memory-line">
        <Kind kind={memory.kind} />
        {memory.speaker && <span>{memory.speaker}</span>}
        <When at={memory.occurred_at} />
        <Origins labels={memory.labels} />
      </p>
    </article>
  );
}

function Results(props: { of: Parameters }) {
  const { q = "", kind, since, until, conversation, user } = props.of;
  const found = useRead(
    (signal) => {
      const body = { query: q, limit: 20, kinds: kind ? [kind as KindName] : [], ...bounds(props.of) };
      return data(api.POST("/api/v1/memory/search", { body, signal, ...asUser(user) }));
    },
    [q, kind, since, until, conversation, user],
  );
  return (
    <Card class="memory-results">
      <Loaded of={found} lines={8}>
        {(answer) => {
          const best = Math.max(0, ...answer.memories.map((memory) => memory.why.text ?? 0));
          return (
            <>
              <h2 aria-live="polite">{t("memory.found", { count: answer.memories.length })}</h2>
              {!!answer.degraded?.length && <p class="memory-warning">{t("memory.degraded", { parts: answer.degraded.join(", ") })}</p>}
              {answer.memories.length ? (
                <ol class="memory-list">
                  {answer.memories.map((memory, index) => (
                    <li key={memory.id}>
                      <Row memory={memory} />
                      <Score total={number(memory.score, 2)} parts={partsOf(memory.score, memory.why, Object.keys(memory.why), best)} open={index === 0}>
                        <p class="note">{[t("memory.score_help"), ...Object.keys(memory.why).map((name) => word("memory", `why_${name}_help`))].join(" ")}</p>
                      </Score>
                    </li>
                  ))}
                </ol>
              ) : (
                <Empty title={t("memory.nothing_found")}>
                  <p>{t("memory.nothing_found_hint")}</p>
                </Empty>
              )}
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}
