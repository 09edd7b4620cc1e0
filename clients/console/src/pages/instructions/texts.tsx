/** All texts that agents are told, to find one by its tag, tier or status. */

import { callTool } from "../../api/client";
import { useRead } from "../../api/use";
import { number } from "../../format";
import { BASE } from "../../pages";
import { t, word } from "../../text";
import { Button, Select, TextField } from "../../ui/controls";
import { Badge, Card, Empty, Loaded } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table, type Column } from "../../ui/table";
import type { InstructionList, TextInfo } from "./tools";

const PAGE = 40;
const TONES = { active: "good", deprecated: "warn", draft: "info" } as const;
const STATUSES = ["active", "deprecated", "draft"] as const;

export function textHref(tag: string): string {
  return `${BASE}/instructions/text?tag=${encodeURIComponent(tag)}`;
}

export function TextStatus(props: { of: TextInfo }) {
  return (
    <span class="row">
      <Badge tone={TONES[props.of.status]}>{word("instructions", `status_${props.of.status}`)}</Badge>
      {props.of.own && <Badge tone="info">{t("instructions.own")}</Badge>}
    </span>
  );
}

export function tierOf(text: TextInfo): string {
  return text.tier === null ? word("instructions", `category_${text.category ?? "none"}`) : t("instructions.tier_number", { number: text.tier });
}

const columns = (): Column<TextInfo>[] => [
  {
    id: "tag",
    label: t("instructions.tag"),
    show: (text) => (
      <a class="mono" href={textHref(text.tag)}>
        {text.tag}
      </a>
    ),
    by: (text) => text.tag,
  },
  { id: "tier", label: t("instructions.tier"), show: (text) => <span class="tier">{tierOf(text)}</span>, by: tierOf },
  { id: "status", label: t("instructions.status"), show: (text) => <TextStatus of={text} />, by: (text) => text.status },
  { id: "for", label: t("instructions.use_cases"), show: (text) => text.use_cases.join(", ") || "–" },
  { id: "version", label: t("instructions.version"), show: (text) => <span class="mono">{text.version}</span> },
  { id: "tokens", label: t("instructions.tokens"), number: true, show: (text) => number(text.tokens), by: (text) => text.tokens },
];

export function Texts() {
  const [{ q = "", tier = "", status = "", own = "", limit = String(PAGE) }, change] = useParameters();
  const list = useRead((signal) => callTool<InstructionList>("list_instructions", {}, signal), []);
  const most = Number(limit) || PAGE;
  const clear = () => change({ q: "", tier: "", status: "", own: "", limit: "" });
  const fits = (text: TextInfo) =>
    text.tag.toLowerCase().includes(q.trim().toLowerCase()) &&
    (!tier || (tier === "agent" ? text.tier === null : text.tier === Number(tier))) &&
    (!status || text.status === status) &&
    (!own || text.own);
  return (
    <Card>
      <div class="filters" role="search" aria-label={t("instructions.texts")}>
        <TextField label={t("shell.search")} type="search" value={q} placeholder="dialogue/router" onInput={(event) => change({ q: event.currentTarget.value, limit: "" })} />
        <Select
          label={t("instructions.tier")}
          value={tier}
          options={[
            { value: "", label: t("shell.all") },
            ...["1", "2", "3"].map((each) => ({ value: each, label: t("instructions.tier_number", { number: each }) })),
            { value: "agent", label: t("instructions.bundles") },
          ]}
          onChange={(event) => change({ tier: event.currentTarget.value, limit: "" })}
        />
        <Select
          label={t("instructions.status")}
          value={status}
          options={[{ value: "", label: t("shell.all") }, ...STATUSES.map((each) => ({ value: each as string, label: word("instructions", `status_${each}`) }))]}
          onChange={(event) => change({ status: event.currentTarget.value, limit: "" })}
        />
        <Select
          label={t("instructions.whose")}
          value={own}
          options={[
            { value: "", label: t("shell.all") },
            { value: "1", label: t("instructions.own_only") },
          ]}
          onChange={(event) => change({ own: event.currentTarget.value, limit: "" })}
        />
      </div>
      <Loaded of={list} lines={8}>
        {({ texts, release }) => {
          const found = texts.filter(fits);
          return found.length ? (
            <>
              <p class="note" aria-live="polite">
                {t("instructions.shown", { count: found.length, release })}
              </p>
              <Table
                label={t("instructions.texts")}
                columns={columns()}
                rows={found}
                most={most}
                id={(text) => text.tag}
                more={found.length > most ? () => change({ limit: String(most + PAGE) }) : undefined}
              />
            </>
          ) : (
            <Empty title={t("instructions.none_found")}>
              <Button onClick={clear}>{t("instructions.clear")}</Button>
            </Empty>
          );
        }}
      </Loaded>
    </Card>
  );
}
