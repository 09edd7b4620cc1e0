/** The page of a node: what it holds, what it serves and is joined to, how it changed, and what may be done with it. */

import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { Archive, ArchiveRestore, Link2, Pencil, Trash2, Unlink, Waypoints } from "lucide-preact";

import { callTool } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { ago, day, number } from "../../format";
import { BASE } from "../../pages";
import { useMe } from "../../session";
import { t } from "../../text";
import { Button, IconButton, LinkButton, Select, TextField } from "../../ui/controls";
import { Confirm, Dialog, useToast } from "../../ui/dialog";
import { Badge, Card, Empty, Facts, Loaded, Page, ProblemNote, Time } from "../../ui/layout";
import { NodeForm } from "./form";
import { addressOf, HOME, type Inventory, mayWrite, type Mention, named, type Node, readAround, readInventory, type Relationship, search, type Subgraph } from "./model";

/** What has its own place on the page, or says nothing to a person. */
const APART = new Set(["id", "type", "layer", "title", "status", "summary", "version", "createdAt", "updatedAt", "properties", "metadata", "provenance"]);
const VERSIONS = 20;

export function toneOf(status: string): "good" | "warn" | "plain" | "info" {
  if (status === "archived") return "plain";
  if (status === "deprecated") return "warn";
  return status === "in_progress" ? "info" : "good";
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.map(shown).join("; ");
  if (typeof value === "number") return number(value, 2);
  if (value && typeof value === "object") return Object.entries(value).map(([name, each]) => `${name}: ${shown(each)}`).join(", ");
  if (typeof value === "string" && /^\d{4}-\d\d-\d\d$/.test(value)) return day(value);
  return String(value ?? "–");
}

function Ladder(props: { id: string }) {
  const climbed = useRead((signal) => callTool<{ ladder: Mention[] }>("discuss_goal_ladder", { id: props.id }, signal), [props.id]);
  return (
    <Card title={t("constitution.ladder")}>
      <Loaded of={climbed} lines={2}>
        {({ ladder }) =>
          ladder.length > 1 ? (
            <ol class="ladder">
              {ladder.map((rung) => (
                <li key={rung.id}>
                  {rung.id === props.id ? <strong>{rung.title}</strong> : <a href={addressOf(rung.id)}>{rung.title}</a>}
                  <span class="note"> {named("type", rung.type)}</span>
                </li>
              ))}
            </ol>
          ) : (
            <p class="note">{t("constitution.no_ladder")}</p>
          )
        }
      </Loaded>
    </Card>
  );
}

/** Joins the node to another that is looked for by meaning. Only what the registry lets join the two is offered. */
function Join(props: { node: Node; inventory: Inventory; close: () => void; done: () => void }) {
  const { node } = props;
  const [query, setQuery] = useState("");
  const [other, setOther] = useState<Node>();
  const [chosen, setChosen] = useState("");
  const seek = useAct(() => search(query));
  const [found, setFound] = useState<Node[]>();
  const fits = other
    ? props.inventory.relationshipTypes.filter((each) => each.ends.some((ends) => ends.from.includes(node.type) && ends.to.includes(other.type)))
    : [];
  const type = fits.find((each) => each.type === chosen)?.type ?? fits[0]?.type;
  const act = useAct(async () => {
    await callTool("relationship.create.v1", { fromId: node.id, toId: other?.id, type });
    props.done();
    props.close();
  });
  return (
    <Dialog
      title={t("constitution.join")}
      onClose={props.close}
      actions={
        <>
          <Button onClick={props.close}>{t("shell.cancel")}</Button>
          <Button kind="primary" busy={act.running} disabled={!other || !type} onClick={() => void act.run()}>
            {t("constitution.join_act")}
          </Button>
        </>
      }
    >
      <form
        class="seek"
        onSubmit={(event) => {
          event.preventDefault();
          void seek.run().then((nodes) => setFound(nodes?.filter((each) => each.id !== node.id)));
        }}
      >
        <TextField label={t("constitution.other")} type="search" required value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
        <Button type="submit" busy={seek.running}>
          {t("shell.search")}
        </Button>
      </form>
      {seek.problem && <ProblemNote problem={seek.problem} />}
      {found && (
        <fieldset class="choices" aria-live="polite">
          <legend class="unseen">{t("constitution.other")}</legend>
          {found.slice(0, 8).map((each) => (
            <label key={each.id}>
              <input type="radio" name="other" checked={other?.id === each.id} onChange={() => setOther(each)} />
              <span>
                {each.title} <span class="note">{named("type", each.type)}</span>
              </span>
            </label>
          ))}
          {!found.length && <p class="note">{t("constitution.nothing_found")}</p>}
        </fieldset>
      )}
      {other && !fits.length && <p class="note">{t("constitution.cannot_join", { from: named("type", node.type), to: named("type", other.type) })}</p>}
      {type && (
        <Select
          label={t("constitution.relationship")}
          value={type}
          options={fits.map((each) => ({ value: each.type, label: named("relationship", each.type) }))}
          onChange={(event) => setChosen(event.currentTarget.value)}
        />
      )}
      {act.problem && <ProblemNote problem={act.problem} />}
    </Dialog>
  );
}

function Neighbours(props: { node: Node; around: Subgraph; writes: boolean; changed: () => void }) {
  const { node, around } = props;
  const toast = useToast();
  const [joining, setJoining] = useState(false);
  const inventory = useRead(readInventory, []);
  const join = useAct(async (of: Relationship) => {
    await callTool("relationship.create.v1", { fromId: of.fromId, toId: of.toId, type: of.type });
    props.changed();
  });
  const part = useAct(async (of: Relationship) => {
    await callTool("relationship.delete.v1", { id: of.id });
    toast(t("constitution.parted"), () => void join.run(of));
    props.changed();
  });
  const byId = new Map(around.nodes.map((each) => [each.id, each]));
  const groups = new Map<string, { link: Relationship; other: Node; out: boolean }[]>();
  for (const link of around.relationships) {
    const out = link.fromId === node.id;
    const other = byId.get(out ? link.toId : link.fromId);
    if (!other || (!out && link.toId !== node.id)) continue;
    const key = `${out ? "out" : "in"} ${link.type}`;
    groups.set(key, [...(groups.get(key) ?? []), { link, other, out }]);
  }
  return (
    <Card
      title={t("constitution.neighbours")}
      actions={
        props.writes && (
          <Button icon={<Link2 aria-hidden="true" />} disabled={!inventory.data} onClick={() => setJoining(true)}>
            {t("constitution.join")}
          </Button>
        )
      }
    >
      {(join.problem ?? part.problem) && <ProblemNote problem={(join.problem ?? part.problem)!} />}
      {!groups.size && (
        <Empty title={t("constitution.alone")}>
          <p>{t("constitution.alone_hint")}</p>
        </Empty>
      )}
      {[...groups].sort(([one], [other]) => other.localeCompare(one)).map(([key, links]) => (
        <section key={key} class="relation">
          <h3>{links[0]?.out ? named("relationship", links[0].link.type) : t("constitution.backwards", { relationship: named("relationship", links[0]?.link.type ?? "") })}</h3>
          <ul>
            {links.map(({ link, other }) => (
              <li key={link.id}>
                <span>
                  <a href={addressOf(other.id)}>{other.title}</a> <span class="note">{named("type", other.type)}</span>
                </span>
                {props.writes && <IconButton label={t("constitution.part", { title: other.title })} icon={<Unlink aria-hidden="true" />} disabled={part.running} onClick={() => void part.run(link)} />}
              </li>
            ))}
          </ul>
        </section>
      ))}
      {around.truncated && <p class="note">{t("constitution.cut")}</p>}
      {joining && inventory.data && <Join node={node} inventory={inventory.data} close={() => setJoining(false)} done={props.changed} />}
    </Card>
  );
}

interface Version {
  version: number;
  at: string;
  actor: string;
  changed: Record<string, [unknown, unknown]>;
}

function Versions(props: { node: Node }) {
  const { id, version } = props.node;
  const told = useRead((signal) => callTool<{ versions: Version[] }>("node.evolution.v1", { id }, signal), [id, version]);
  if (told.problem?.status === 404) return <p class="note">{t("constitution.no_versions")}</p>;
  return (
    <Loaded of={told} lines={2}>
      {({ versions }) => (
        <ol class="versions">
          {[...versions].reverse().slice(0, VERSIONS).map((each) => (
            <li key={each.version}>
              <details>
                <summary>
                  {t("constitution.version_by", { version: each.version, actor: each.actor })} <Time at={each.at} show={ago} />
                </summary>
                <dl class="changes">
                  {Object.entries(each.changed).map(([field, [before, after]]) => (
                    <div key={field}>
                      <dt>{named("field", field)}</dt>
                      <dd>
                        {before !== null && <del>{shown(before)}</del>} <ins>{shown(after)}</ins>
                      </dd>
                    </div>
                  ))}
                </dl>
              </details>
            </li>
          ))}
        </ol>
      )}
    </Loaded>
  );
}

/** How the node changed, read when it is asked for: not everybody who may read a node may read its versions. */
function Evolution(props: { node: Node }) {
  const [open, setOpen] = useState(false);
  return (
    <Card
      title={t("constitution.evolution")}
      actions={
        <Button aria-expanded={open} onClick={() => setOpen(!open)}>
          {t(open ? "constitution.hide_versions" : "constitution.show_versions")}
        </Button>
      }
    >
      {open && <Versions node={props.node} />}
    </Card>
  );
}

function Acts(props: { node: Node; changed: (node: Node) => void }) {
  const { node } = props;
  const { route } = useLocation();
  const toast = useToast();
  const inventory = useRead(readInventory, []);
  const type = inventory.data?.types.find((each) => each.type === node.type);
  const [open, setOpen] = useState<"edit" | "delete">();
  const write = async (fields: Record<string, unknown>) => {
    const done = await callTool<{ node: Node }>(`${node.type}.update.v1`, { id: node.id, ...fields });
    props.changed(done.node);
  };
  const undo = useAct(write);
  const archived = node.status === "archived";
  const shelve = useAct(async () => {
    await write({ status: archived ? type?.statuses[0] : "archived" });
    toast(t(archived ? "constitution.restored" : "constitution.archived"), () => void undo.run({ status: node.status }));
  });
  const remove = useAct(async () => {
    await callTool("node.delete.v1", { id: node.id });
    toast(t("constitution.deleted"));
    route(`${HOME}/${node.layer}`);
  });
  const problem = shelve.problem ?? undo.problem;
  return (
    <>
      <Button kind="primary" icon={<Pencil aria-hidden="true" />} disabled={!type} onClick={() => setOpen("edit")}>
        {t("shell.edit")}
      </Button>
      <Button icon={archived ? <ArchiveRestore aria-hidden="true" /> : <Archive aria-hidden="true" />} busy={shelve.running} onClick={() => void shelve.run()}>
        {t(archived ? "constitution.restore" : "constitution.archive")}
      </Button>
      <IconButton label={t("shell.delete")} icon={<Trash2 aria-hidden="true" />} onClick={() => setOpen("delete")} />
      {problem && <ProblemNote problem={problem} />}
      {open === "edit" && type && (
        <Dialog title={t("constitution.edit_of", { title: node.title })} onClose={() => setOpen(undefined)}>
          <NodeForm
            type={type}
            node={node}
            close={() => setOpen(undefined)}
            saved={(now, changed) => {
              setOpen(undefined);
              props.changed(now);
              const before = Object.fromEntries(changed.map((name) => [name, node[name] ?? null]));
              toast(t("constitution.saved"), changed.length ? () => void undo.run(before) : undefined);
            }}
          />
        </Dialog>
      )}
      {open === "delete" && (
        <Confirm title={t("constitution.delete_of", { title: node.title })} act={t("shell.delete")} busy={remove.running} problem={remove.problem} onConfirm={() => void remove.run()} onClose={() => setOpen(undefined)}>
          <p>{t("constitution.delete_hint")}</p>
        </Confirm>
      )}
    </>
  );
}

export function NodePage(props: { id: string }) {
  const me = useMe();
  const found = useRead((signal) => callTool<{ node: Node }>("node.get.v1", { id: props.id }, signal), [props.id]);
  const around = useRead((signal) => readAround(props.id, signal), [props.id]);
  const node = found.data?.node;
  if (!node) return <Page title={t("shell.constitution")}><Loaded of={found}>{() => null}</Loaded></Page>;
  const writes = mayWrite(me, node.layer);
  const facts = Object.entries(node).filter(([name, value]) => !APART.has(name) && value !== null && value !== "");
  const free = Object.entries(node.properties ?? {});
  return (
    <Page
      title={node.title}
      {...(node.summary ? { lead: node.summary } : {})}
      actions={writes && <Acts node={node} changed={(now) => { found.set({ node: now }); around.reload(); }} />}
    >
      <div class="row">
        <a href={`${HOME}/${node.layer}`}>{named("layer", node.layer)}</a>
        <Badge>{named("type", node.type)}</Badge>
        {node.status && <Badge tone={toneOf(node.status)}>{named("status", node.status)}</Badge>}
        {node.updatedAt && <span class="note">{t("constitution.version_of", { version: node.version ?? 1 })} <Time at={node.updatedAt} show={ago} /></span>}
        <LinkButton kind="quiet" href={`${BASE}/graph/constitution?open=${encodeURIComponent(encodeURIComponent(node.id))}`} icon={<Waypoints aria-hidden="true" />}>
          {t("constitution.in_graph")}
        </LinkButton>
      </div>
      {facts.length + free.length > 0 && (
        <Card title={t("constitution.facts")}>
          <Facts of={[...facts.map(([name, value]): [string, string] => [named("field", name), shown(value)]), ...free.map(([name, value]): [string, string] => [name, shown(value)])]} />
        </Card>
      )}
      {node.type === "goal" && <Ladder id={node.id} />}
      <Loaded of={around}>{(subgraph) => <Neighbours node={node} around={subgraph} writes={writes} changed={around.reload} />}</Loaded>
      <Evolution node={node} />
    </Page>
  );
}
