/** A node of the twin in one of its years: properties, what it is linked to, its other years, and its chains with their gaps. */

import { ArrowLeft, Waypoints } from "lucide-preact";

import { callTool } from "../../api/client";
import { useRead } from "../../api/use";
import { day, number } from "../../format";
import { t } from "../../text";
import { LinkButton } from "../../ui/controls";
import { Badge, Card, Empty, Facts, Loaded, Page } from "../../ui/layout";
import { Table } from "../../ui/table";
import { type Gap, GapType, readGaps } from "./gaps";
import { called, HOME, keyOf, readLinks, type Reference, twin, twinAddress, type TwinType, type Vocabulary } from "./model";

/** Properties that one call shows. */
const SHOWN = 11;

type Row = Record<string, unknown> & { id: string; name: string; year: number; level: string };
type Property = TwinType["properties"][number];

/** The node in each of its years. */
async function readYears(type: TwinType, id: string, signal: AbortSignal): Promise<Row[]> {
  const names = type.properties.map((property) => property.name);
  const rows = new Map<number, Row>();
  for (let start = 0; start === 0 || start < names.length; start += SHOWN) {
    const show = ["level", ...names.slice(start, start + SHOWN)];
    const given = { type: type.name, where: [{ property: "id", value: id }], measure: "list", show };
    const page = await callTool<{ rows: Row[] }>("survey_twin", given, signal);
    for (const row of page.rows) rows.set(row.year, { ...rows.get(row.year), ...row });
  }
  return [...rows.values()].sort((one, other) => one.year - other.year);
}

function shown(value: unknown, property?: Property): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return `${number(value, 2)}${property?.unit ? ` ${property.unit}` : ""}`;
  if (typeof value === "string" && /^\d{4}-\d\d-\d\d$/.test(value)) return day(value);
  return String(value);
}

function Years(props: { type: TwinType; rows: Row[] }) {
  const { rows } = props;
  const short = props.type.properties.filter((property) => rows.some((row) => row[property.name] != null) && rows.every((row) => String(row[property.name] ?? "").length < 40));
  const changed = short.filter((property) => new Set(rows.map((row) => row[property.name] ?? null)).size > 1);
  if (rows.length < 2) return null;
  return (
    <Card title={t("graph.years")}>
      {changed.length ? (
        <Table
          label={t("graph.years")}
          rows={changed}
          id={(property) => property.name}
          columns={[
            { id: "property", label: t("graph.property"), show: (property) => called(property.words, property.name) },
            ...rows.map((row) => ({ id: String(row.year), label: String(row.year), show: (property: Property) => shown(row[property.name], property) })),
          ]}
        />
      ) : (
        <p class="note">{t("graph.years_same")}</p>
      )}
    </Card>
  );
}

interface Chain {
  paths: { nodes: { type: string; id: string; name: string }[]; relationships: string[]; whole: boolean }[];
}

function Chains(props: { vocabulary: Vocabulary; reference: Reference; level: string }) {
  const { vocabulary, reference, level } = props;
  const source = twin(vocabulary);
  const chains = vocabulary.ontology.chains.filter(({ steps }) => steps.some((types, place) => place % 2 === 0 && place < steps.length - 1 && types.includes(reference.type)));
  const walked = useRead(
    async (signal) => {
      const questions = chains.map((chain) => ({ id: chain.name, node: reference, level, chain: chain.name }));
      const [gaps, runs] = await Promise.all([
        questions.length ? readGaps(questions, signal) : { gaps: [] },
        Promise.all(chains.map((chain) => callTool<Chain>("run_chain", { chain: chain.name, year: reference.year, level, start: reference.id, start_type: reference.type, limit: 1 }, signal))),
      ]);
      return chains.map((chain, place) => ({ chain, path: runs[place]?.paths[0], gap: gaps.gaps.find((gap: Gap) => gap.question === chain.name) }));
    },
    [keyOf(reference), level],
  );
  if (!chains.length) return null;
  return (
    <Card title={t("graph.chains")}>
      <Loaded of={walked}>
        {(found) =>
          found.map(({ chain, path, gap }) => (
            <section key={chain.name} class="chain">
              <div class="spread">
                <h3>{called(chain.words, chain.name)}</h3>
                {path?.whole ? <Badge tone="good">{t("graph.complete")}</Badge> : gap && <GapType type={gap.type} />}
              </div>
              {path && path.nodes.length > 1 && (
                <ol class="steps">
                  {path.nodes.map((node, place) => (
                    <li key={node.id}>
                      {place > 0 && <span class="note">{t("graph.step_out", { relationship: source.relationName(path.relationships[place - 1] ?? "") })}</span>}
                      <a href={twinAddress(keyOf({ type: node.type, id: node.id, year: reference.year }))}>{node.name}</a>
                      <span class="note"> {source.typeName(node.type)}</span>
                    </li>
                  ))}
                </ol>
              )}
              {gap && (
                <p class="note">
                  {t("graph.missing", { step: gap.missing_step })} {gap.because}
                </p>
              )}
            </section>
          ))
        }
      </Loaded>
    </Card>
  );
}

function Links(props: { vocabulary: Vocabulary; reference: Reference }) {
  const key = keyOf(props.reference);
  const source = twin(props.vocabulary);
  const links = useRead((signal) => readLinks([key], signal), [key]);
  return (
    <Card title={t("graph.neighbours")}>
      <Loaded of={links}>
        {(found) => {
          const groups = new Map<string, typeof found.links>();
          for (const link of found.links) {
            const name = link.forward ? source.relationName(link.relationship) : t("graph.backwards", { relationship: source.relationName(link.relationship) });
            groups.set(name, [...(groups.get(name) ?? []), link]);
          }
          return groups.size ? (
            <>
              {[...groups].map(([name, some]) => (
                <section key={name} class="linked">
                  <h3>{name}</h3>
                  <ul>
                    {some.slice(0, 50).map((link) => (
                      <li key={`${link.type}/${link.id}`}>
                        <span>
                          <a href={twinAddress(keyOf({ type: link.type, id: link.id, year: props.reference.year }))}>{link.name}</a> <span class="note">{source.typeName(link.type)}</span>
                        </span>
                      </li>
                    ))}
                  </ul>
                  {some.length > 50 && <p class="note">{t("graph.and_more", { count: some.length - 50 })}</p>}
                </section>
              ))}
            </>
          ) : (
            <Empty title={t("graph.alone")} />
          );
        }}
      </Loaded>
    </Card>
  );
}

export function TwinNode(props: { vocabulary: Vocabulary; reference: Reference }) {
  const { vocabulary, reference } = props;
  const type = vocabulary.ontology.types.find((each) => each.name === reference.type);
  const years = useRead(async (signal) => (type ? readYears(type, reference.id, signal) : []), [reference.type, reference.id]);
  const row = years.data?.find((each) => each.year === reference.year);
  const source = twin(vocabulary);
  const properties = type?.properties.filter((property) => row?.[property.name] != null) ?? [];
  return (
    <Page
      title={row?.name ?? years.data?.at(-1)?.name ?? reference.id}
      actions={
        <>
          <LinkButton href={HOME} icon={<ArrowLeft aria-hidden="true" />}>
            {t("graph.back")}
          </LinkButton>
          <LinkButton kind="primary" href={`${HOME}?open=${encodeURIComponent(encodeURIComponent(keyOf(reference)))}&sel=${encodeURIComponent(keyOf(reference))}&year=${reference.year}`} icon={<Waypoints aria-hidden="true" />}>
            {t("graph.show")}
          </LinkButton>
        </>
      }
    >
      <div class="row">
        <Badge>{source.typeName(reference.type)}</Badge>
        {row && <span class="note">{source.groupName(row.level)}</span>}
        <nav class="row" aria-label={t("graph.years")}>
          {years.data?.map((each) => (
            <a key={each.year} class="year" href={twinAddress(keyOf({ ...reference, year: each.year }))} aria-current={each.year === reference.year ? "page" : undefined}>
              {each.year}
            </a>
          ))}
        </nav>
      </div>
      <Loaded of={years}>
        {(rows) =>
          row && type ? (
            <>
              <Card title={t("graph.properties", { year: String(reference.year) })}>
                <Facts of={[["ID", row.id], ...properties.map((property): [string, string] => [called(property.words, property.name), shown(row[property.name], property)])]} />
              </Card>
              <Links vocabulary={vocabulary} reference={reference} />
              <Years type={type} rows={rows} />
              <Chains vocabulary={vocabulary} reference={reference} level={row.level} />
            </>
          ) : (
            <Card>
              <Empty title={t("graph.not_in_year", { year: String(reference.year) })}>
                <p>{t("graph.not_in_year_hint")}</p>
              </Empty>
            </Card>
          )
        }
      </Loaded>
    </Page>
  );
}
