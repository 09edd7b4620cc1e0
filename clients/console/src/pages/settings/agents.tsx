/** Agents: the packaged ones and the tenant's own, with the versions of those, what changed, and going back;
 * made, changed and deleted. */

import { useState } from "preact/hooks";
import { Pencil, Plus } from "lucide-preact";
import { useLocation } from "preact-iso";

import { api, data, once, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { number } from "../../format";
import { administers, useMe } from "../../session";
import { t } from "../../text";
import { Button } from "../../ui/controls";
import { Confirm, useToast } from "../../ui/dialog";
import { Diff } from "../../ui/diff";
import { Badge, Card, Empty, Facts, Loaded, ProblemNote } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { mayEdit } from "../instructions/rights";
import { AgentForm } from "./agent-form";
import { ROOT, When } from "./parts";

type Version = Schemas["AgentVersion"];

export function Agents(props: { rest: string[] }) {
  const [name] = props.rest;
  return name ? <One key={name} name={name} /> : <All />;
}

function All() {
  const me = useMe();
  const { route } = useLocation();
  const [making, setMaking] = useState(false);
  const agents = useRead(async (signal) => (await data(api.GET("/api/v1/agents", { signal }))).agents, []);
  return (
    <Loaded of={agents} lines={6}>
      {(all) => (
        <>
          <Card
            title={t("settings.own_agents")}
            actions={
              mayEdit(me) && (
                <Button icon={<Plus aria-hidden="true" />} onClick={() => setMaking(true)}>
                  {t("settings.agent_make")}
                </Button>
              )
            }
          >
            {all.some((agent) => agent.own) ? (
              <Table
                label={t("settings.own_agents")}
                rows={all.filter((agent) => agent.own)}
                id={(agent) => agent.name}
                columns={[
                  { id: "name", label: t("settings.by_agent"), show: (agent) => <a href={`${ROOT}/agents/${agent.name}`}>{agent.name}</a>, by: (agent) => agent.name },
                  { id: "for", label: t("settings.purpose"), show: (agent) => agent.description || "–" },
                  { id: "base", label: t("settings.based_on"), show: (agent) => agent.based_on || "–", by: (agent) => agent.based_on ?? "" },
                  { id: "version", label: t("settings.version"), show: (agent) => number(agent.version ?? 0), by: (agent) => agent.version ?? 0, number: true },
                  { id: "at", label: t("settings.changed"), show: (agent) => agent.at && <When at={agent.at} />, by: (agent) => agent.at ?? "" },
                ]}
              />
            ) : (
              <Empty title={t("settings.no_own_agents")}>
                <p>{t("settings.no_own_agents_hint")}</p>
              </Empty>
            )}
          </Card>
          <Card title={t("settings.packaged_agents")}>
            <dl class="settings-agents">
              {all
                .filter((agent) => !agent.own)
                .map((agent) => (
                  <div key={agent.name}>
                    <dt>{mayEdit(me) ? <a href={`${ROOT}/agents/${agent.name}`}>{agent.name}</a> : agent.name}</dt>
                    <dd>{agent.description}</dd>
                  </div>
                ))}
            </dl>
          </Card>
          {making && <AgentForm packaged={packagedOf(all)} onClose={() => setMaking(false)} onDone={(name) => route(`${ROOT}/agents/${name}`)} />}
        </>
      )}
    </Loaded>
  );
}

function packagedOf(all: readonly Schemas["AgentInfo"][]): string[] {
  return all.filter((agent) => !agent.own).map((agent) => agent.name);
}

function One(props: { name: string }) {
  const path = { name: props.name };
  const me = useMe();
  const [chosen, change] = useParameters();
  const [back, setBack] = useState<Version>();
  const shown = useRead((signal) => data(api.GET("/api/v1/agents/{name}", { params: { path }, signal })), [props.name]);
  const isOwn = !!shown.data?.agent.own;
  const versions = useRead(
    async (signal) => (isOwn ? (await data(api.GET("/api/v1/agents/{name}/versions", { params: { path }, signal }))).versions : []),
    [props.name, isOwn, shown.data?.agent.version],
  );
  const before = Number(chosen.before ?? 0);
  const toast = useToast();
  const { route } = useLocation();
  const [changing, setChanging] = useState(false);
  const [leaving, setLeaving] = useState(false);
  const all = useRead(async (signal) => (await data(api.GET("/api/v1/agents", { signal }))).agents, []);
  const remove = useAct(async () => {
    await data(api.DELETE("/api/v1/agents/{name}", { params: { path, header: once() } }));
    toast(t("settings.agent_deleted", { name: props.name }), () => void restore.run());
    route(`${ROOT}/agents`);
  });
  const restore = useAct(async () => {
    await data(api.POST("/api/v1/agents/{name}/rollback", { params: { path, header: once() }, body: { dryRun: false } }));
    route(`${ROOT}/agents/${props.name}`);
  });
  const own = isOwn && mayEdit(me);
  return (
    <>
      <p>
        <a href={`${ROOT}/agents`}>{t("settings.all_agents")}</a>
      </p>
      <Card
        title={props.name}
        actions={
          own && (
            <>
              <Button icon={<Pencil aria-hidden="true" />} onClick={() => setChanging(true)}>
                {t("shell.edit")}
              </Button>
              <Button kind="danger" onClick={() => setLeaving(true)}>
                {t("shell.delete")}
              </Button>
            </>
          )
        }
      >
        <Loaded of={shown}>
          {({ agent, definition, tools, loop, stages }) => (
            <>
              <Facts
                of={[
                  [t("settings.purpose"), agent.description || "–"],
                  agent.own ? [t("settings.based_on"), agent.based_on || "–"] : [t("settings.agent_loop"), `${loop}: ${(stages ?? []).join(", ")}`],
                  [t("settings.model"), definition?.model ?? t("settings.model_default")],
                  [t("settings.tools_of"), tools?.length ? tools.join(", ") : "–"],
                ]}
              />
              {definition?.instructions && <pre class="settings-text" tabIndex={0}>{definition.instructions}</pre>}
            </>
          )}
        </Loaded>
      </Card>
      {isOwn && (
        <Card title={t("settings.versions")}>
          <Loaded of={versions}>
            {(rows) => (
              <Table
                label={t("settings.versions")}
                rows={rows}
                id={(version) => String(version.version)}
                columns={[
                  { id: "version", label: t("settings.version"), show: (version) => number(version.version) },
                  { id: "at", label: t("settings.changed"), show: (version) => <When at={version.at} /> },
                  { id: "by", label: t("settings.by"), show: (version) => version.by },
                  { id: "note", label: t("settings.note"), show: (version) => version.note || "–" },
                  {
                    id: "act",
                    label: t("shell.actions"),
                    show: (version) =>
                      version.active ? (
                        <Badge tone="good">{t("settings.active")}</Badge>
                      ) : (
                        <span class="settings-badges">
                          <Button kind="quiet" aria-label={`${t("settings.compare")} ${version.version}`} onClick={() => change({ before: String(version.version) })}>
                            {t("settings.compare")}
                          </Button>
                          {administers(me.role) && (
                            <Button kind="quiet" aria-label={`${t("settings.restore")} ${version.version}`} onClick={() => setBack(version)}>
                              {t("settings.restore")}
                            </Button>
                          )}
                        </span>
                      ),
                  },
                ]}
              />
            )}
          </Loaded>
        </Card>
      )}
      {before > 0 && <Compared name={props.name} before={before} round={shown.data?.agent.version ?? 0} />}
      {changing && shown.data?.definition && (
        <AgentForm of={shown.data.definition} packaged={packagedOf(all.data ?? [])} onClose={() => setChanging(false)} onDone={shown.reload} />
      )}
      {leaving && (
        <Confirm title={t("settings.agent_delete", { name: props.name })} act={t("shell.delete")} busy={remove.running} problem={remove.problem} onConfirm={() => void remove.run()} onClose={() => setLeaving(false)}>
          <p>{t("settings.agent_delete_text")}</p>
        </Confirm>
      )}
      {back && (
        <Rollback
          name={props.name}
          to={back}
          onClose={() => setBack(undefined)}
          onDone={shown.reload}
        />
      )}
    </>
  );
}

function Compared(props: { name: string; before: number; round: number }) {
  const path = { name: props.name };
  const diff = useRead(
    (signal) => data(api.GET("/api/v1/agents/{name}/diff", { params: { path, query: { before: props.before } }, signal })),
    [props.name, props.before, props.round],
  );
  return (
    <Card title={t("settings.compared", { version: props.before })}>
      <Loaded of={diff}>{(found) => (found.diff ? <Diff label={t("settings.diff")} patch={found.diff} /> : <p class="note">{t("settings.no_difference")}</p>)}</Loaded>
    </Card>
  );
}

function Rollback(props: { name: string; to: Version; onClose: () => void; onDone: () => void }) {
  const toast = useToast();
  const { version } = props.to;
  const post = (to: number, dryRun: boolean) =>
    data(api.POST("/api/v1/agents/{name}/rollback", { params: { path: { name: props.name }, header: once() }, body: { version: to, dryRun } }));
  const preview = useRead(() => post(version, true), [props.name, version]);
  const act = useAct(async () => {
    await post(version, false);
    toast(t("settings.rolled_back", { version }));
    props.onClose();
    props.onDone();
  });
  return (
    <Confirm title={t("settings.roll_back", { version })} act={t("settings.restore")} busy={act.running || !preview.data} problem={act.problem} onConfirm={() => void act.run()} onClose={props.onClose}>
      <p>{t("settings.roll_back_text", { version, name: props.name })}</p>
      {preview.problem ? <ProblemNote problem={preview.problem} /> : preview.data?.diff ? <Diff label={t("settings.diff")} patch={preview.data.diff} /> : null}
    </Confirm>
  );
}
