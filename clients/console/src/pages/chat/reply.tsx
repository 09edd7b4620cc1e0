/** A reply as a person reads it: text, charts, tables, what it rests on, how sure it is, and what it lacks. */

import type { ComponentChildren } from "preact";

import type { Schemas } from "../../api/client";
import { dollars, duration, number, percent } from "../../format";
import { t } from "../../text";
import { Rows, Shown } from "../../ui/chart";
import { Badge } from "../../ui/layout";
import { Markdown } from "../../ui/markdown";

type Reply = Schemas["Reply"];
type Analysis = Schemas["Analysis"];
type Row = Record<string, unknown>;

function Fold(props: { title: string; children: ComponentChildren }) {
  return (
    <details class="fold">
      <summary>{props.title}</summary>
      {props.children}
    </details>
  );
}

function Findings(props: { of: Analysis }) {
  const { of } = props;
  const stats = Object.entries((of.data?.summary_stats ?? {}) as Row);
  const rows = (of.data?.query_results ?? []) as Row[];
  return (
    <>
      {of.analysis && of.analysis.length > 0 && (
        <ul class="findings">
          {of.analysis.map((each) => (
            <li key={each}>
              <Markdown html text={each} />
            </li>
          ))}
        </ul>
      )}
      {(of.visualizations ?? []).map((each, at) => (
        <Shown key={at} of={each} />
      ))}
      {stats.length > 0 && <Rows title={t("chat.figures")} rows={[Object.fromEntries(stats)]} />}
      {rows.length > 0 && (
        <Fold title={t("chat.rows_behind", { count: rows.length })}>
          <Rows title={t("chat.figures")} rows={rows} />
        </Fold>
      )}
      {of.cypher_executed && (
        <Fold title={t("chat.cypher")}>
          <pre>{of.cypher_executed}</pre>
        </Fold>
      )}
      {of.memory_process && (
        <Fold title={t("chat.thinking")}>
          <p>
            <strong>{of.memory_process.intent}</strong>
          </p>
          <p>{of.memory_process.thought_trace}</p>
        </Fold>
      )}
    </>
  );
}

function Sources(props: { of: Schemas["Source"][] }) {
  return (
    <details class="fold sources">
      <summary>{t("chat.sources", { count: props.of.length })}</summary>
      <ol>
        {props.of.map((each) => (
          <li key={each.id}>
            <details>
              <summary>
                {each.title || each.id} <Badge>{each.type.replaceAll("_", " ")}</Badge>
              </summary>
              <blockquote>{each.snippet}</blockquote>
              <p class="note mono">{each.id}</p>
            </details>
          </li>
        ))}
      </ol>
    </details>
  );
}

/** A reply with its marks. */
export function ReplyView(props: { reply: Reply; confidence?: number | null | undefined }) {
  const { reply } = props;
  const analysis = reply.analysis ?? undefined;
  const sure = analysis?.confidence ?? props.confidence;
  const usage = reply.usage;
  return (
    <div class="reply">
      <Markdown html={!!analysis} text={analysis ? analysis.answer : reply.user_response} />
      {analysis && <Findings of={analysis} />}
      {reply.sources && reply.sources.length > 0 && <Sources of={reply.sources} />}
      {(reply.tool_calls ?? []).length > 0 && (
        <Fold title={t("chat.calls", { count: (reply.tool_calls ?? []).length })}>
          <ul class="calls">
            {(reply.tool_calls ?? []).map((call, at) => (
              <li key={at}>
                <pre>{JSON.stringify(call, null, 2)}</pre>
              </li>
            ))}
          </ul>
        </Fold>
      )}
      <p class="marks">
        {(reply.degraded ?? []).map((part) => (
          <Badge key={part} tone="warn">
            {t("chat.without", { part: part.replaceAll("_", " ") })}
          </Badge>
        ))}
        {typeof sure === "number" && <Badge tone={sure >= 0.7 ? "good" : sure >= 0.4 ? "info" : "warn"}>{t("chat.confidence", { share: percent(sure) })}</Badge>}
        <span class="note">
          {[
            reply.reasoner === "extractive" ? t("chat.by_rules") : reply.reasoner,
            usage?.ms ? duration(usage.ms / 1000) : "",
            usage && usage.input_tokens + usage.output_tokens > 0 ? t("chat.tokens", { count: number(usage.input_tokens + usage.output_tokens) }) : "",
            usage?.cost_usd ? dollars(usage.cost_usd) : "",
          ]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </p>
    </div>
  );
}
