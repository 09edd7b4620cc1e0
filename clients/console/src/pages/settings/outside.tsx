/** Outside MCP servers: which there are, what they offer, and which of their tools agents may call. */

import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";

import { api, data, once, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { number } from "../../format";
import { t, word } from "../../text";
import { Button, Select, TextArea, TextField } from "../../ui/controls";
import { Confirm, Dialog, useToast } from "../../ui/dialog";
import { Diff } from "../../ui/diff";
import { Badge, Card, Empty, Facts, Loaded, ProblemNote } from "../../ui/layout";
import { Table } from "../../ui/table";
import { ROOT } from "./parts";

type Server = Schemas["OutsideServer"];
type Inspected = Schemas["InspectedTool"];
const TONES = { accepted: "good", new: "info", changed: "warn", gone: "plain", unusable: "bad" } as const;
const RISKS = ["0", "1", "2", "3"];

export function Outside(props: { rest: string[] }) {
  const [name] = props.rest;
  return name ? <One key={name} name={name} /> : <All />;
}

function All() {
  const { route } = useLocation();
  const [adding, setAdding] = useState(false);
  const servers = useRead(async (signal) => (await data(api.GET("/api/v1/mcp-servers", { signal }))).servers ?? [], []);
  return (
    <Card
      title={t("settings.tools")}
      actions={
        <Button kind="primary" icon={<Plus aria-hidden="true" />} onClick={() => setAdding(true)}>
          {t("settings.server_add")}
        </Button>
      }
    >
      <Loaded of={servers}>
        {(rows) =>
          rows.length ? (
            <Table
              label={t("settings.tools")}
              rows={rows}
              id={(server) => server.name}
              columns={[
                { id: "name", label: t("settings.server"), show: (server) => <a href={`${ROOT}/tools/${server.name}`}>{server.name}</a>, by: (server) => server.name },
                { id: "where", label: t("settings.where"), show: (server) => server.url ?? server.command?.join(" ") },
                { id: "state", label: t("settings.state"), show: (server) => <On server={server} />, by: (server) => String(server.enabled) },
                { id: "tools", label: t("settings.accepted"), show: (server) => number(server.tools?.length ?? 0), by: (server) => server.tools?.length ?? 0, number: true },
              ]}
            />
          ) : (
            <Empty title={t("settings.no_servers")}>
              <p>{t("settings.no_servers_hint")}</p>
            </Empty>
          )
        }
      </Loaded>
      {adding && <Add onClose={() => setAdding(false)} onDone={(name) => route(`${ROOT}/tools/${name}`)} />}
    </Card>
  );
}

function On(props: { server: Server }) {
  return <Badge tone={props.server.enabled ? "good" : "plain"}>{t(props.server.enabled ? "settings.on" : "settings.off")}</Badge>;
}

function Add(props: { onClose: () => void; onDone: (name: string) => void }) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [headers, setHeaders] = useState("");
  const [seconds, setSeconds] = useState("20");
  const [key] = useState(once);
  const act = useAct(async () => {
    const secret = Object.fromEntries(
      headers
        .split("\n")
        .filter((line) => line.includes(":"))
        .map((line) => [line.slice(0, line.indexOf(":")).trim(), line.slice(line.indexOf(":") + 1).trim()]),
    );
    const body = { name: name.trim(), url: url.trim(), seconds: Number(seconds), secret_headers: secret as Record<string, never> };
    const server = await data(api.POST("/api/v1/mcp-servers", { body, params: { header: key } }));
    props.onDone(server.name);
  });
  return (
    <Dialog
      title={t("settings.server_add")}
      onClose={props.onClose}
      actions={
        <>
          <Button onClick={props.onClose}>{t("shell.cancel")}</Button>
          <Button kind="primary" busy={act.running} disabled={!name.trim() || !url.trim()} onClick={() => void act.run()}>
            {t("settings.add")}
          </Button>
        </>
      }
    >
      <p class="note">{t("settings.server_hint")}</p>
      <div class="settings-two">
        <TextField label={t("settings.server_name")} hint={t("settings.server_name_hint")} value={name} autofocus maxLength={20} onInput={(event) => setName(event.currentTarget.value)} />
        <TextField label={t("settings.seconds")} type="number" min={1} max={55} value={seconds} onInput={(event) => setSeconds(event.currentTarget.value)} />
      </div>
      <TextField label={t("settings.url")} type="url" placeholder="https://" value={url} onInput={(event) => setUrl(event.currentTarget.value)} />
      <TextArea label={t("settings.headers")} hint={t("settings.headers_hint")} rows={2} value={headers} onInput={(event) => setHeaders(event.currentTarget.value)} />
      {act.problem && <ProblemNote problem={act.problem} />}
    </Dialog>
  );
}

function One(props: { name: string }) {
  const { name } = props;
  const path = { name };
  const { route } = useLocation();
  const toast = useToast();
  const [removing, setRemoving] = useState(false);
  const servers = useRead(async (signal) => (await data(api.GET("/api/v1/mcp-servers", { signal }))).servers?.find((each) => each.name === name), [name]);
  const inspected = useRead((signal) => data(api.GET("/api/v1/mcp-servers/{name}/tools", { params: { path }, signal })), [name]);
  const flip = useAct(async (enabled: boolean) => {
    const server = await data(api.PATCH("/api/v1/mcp-servers/{name}", { params: { path, header: once() }, body: { enabled } }));
    servers.set(server);
    toast(t(enabled ? "settings.switched_on" : "settings.switched_off", { name }));
  });
  const remove = useAct(async () => {
    await data(api.DELETE("/api/v1/mcp-servers/{name}", { params: { path, header: once() } }));
    toast(t("settings.server_removed", { name }));
    route(`${ROOT}/tools`);
  });
  const server = servers.data;
  const changed = () => {
    servers.reload();
    inspected.reload();
  };
  return (
    <>
      <p>
        <a href={`${ROOT}/tools`}>{t("settings.all_servers")}</a>
      </p>
      <Card
        title={name}
        actions={
          server && (
            <>
              <Button busy={flip.running} onClick={() => void flip.run(!server.enabled)}>
                {t(server.enabled ? "settings.switch_off" : "settings.switch_on")}
              </Button>
              <Button kind="danger" onClick={() => setRemoving(true)}>
                {t("settings.remove")}
              </Button>
            </>
          )
        }
      >
        {flip.problem && <ProblemNote problem={flip.problem} />}
        <Loaded of={servers} lines={2}>
          {(found) =>
            found && (
              <Facts
                of={[
                  [t("settings.state"), <On server={found} />],
                  [t("settings.where"), found.url ?? found.command?.join(" ") ?? ""],
                  [t("settings.headers_kept"), found.headers?.join(", ") || t("shell.none")],
                  [t("settings.seconds"), number(found.seconds)],
                  [t("settings.by"), found.created_by || "–"],
                ]}
              />
            )
          }
        </Loaded>
        {!servers.loading && !server && !servers.problem && <Empty title={t("settings.no_such_server")} />}
      </Card>
      <Card title={t("settings.offers")} actions={<Button busy={inspected.loading} onClick={inspected.reload}>{t("settings.inspect")}</Button>}>
        <p class="note">{t("settings.offers_hint")}</p>
        <Loaded of={inspected}>
          {({ tools = [], server: of }) =>
            tools.length ? (
              <ul class="settings-tools">
                {tools.map((tool) => (
                  <li key={tool.name}>
                    <OneTool server={of} tool={tool} onDone={changed} />
                  </li>
                ))}
              </ul>
            ) : (
              <Empty title={t("settings.no_offers")} />
            )
          }
        </Loaded>
      </Card>
      {removing && (
        <Confirm title={t("settings.server_remove", { name })} act={t("settings.remove")} word={name} busy={remove.running} problem={remove.problem} onConfirm={() => void remove.run()} onClose={() => setRemoving(false)}>
          <p>{t("settings.server_remove_text")}</p>
        </Confirm>
      )}
    </>
  );
}

function OneTool(props: { server: Server; tool: Inspected; onDone: () => void }) {
  const { server, tool } = props;
  const toast = useToast();
  const accepted = server.tools?.find((each) => each.name === tool.name);
  const [risk, setRisk] = useState(String(accepted?.risk ?? 3));
  const [withdrawing, setWithdrawing] = useState(false);
  const params = { path: { name: server.name }, header: once() };
  const allowed = { name: tool.name, risk: Number(risk) as Schemas["Risk"], idempotent: accepted?.idempotent ?? false };
  const accept = useAct(async () => {
    const pins = { [tool.name]: tool.pin } as unknown as Record<string, never>;
    await data(api.PUT("/api/v1/mcp-servers/{name}/tools", { params, body: { tools: [allowed], pins } }));
    toast(t("settings.tool_now_accepted", { name: tool.name }));
    props.onDone();
  });
  const judge = useAct(async (withdrawn: string[]) => {
    await data(api.PATCH("/api/v1/mcp-servers/{name}/tools", { params, body: { tools: withdrawn.length ? [] : [allowed], withdrawn } }));
    toast(t(withdrawn.length ? "settings.tool_withdrawn" : "settings.saved", { name: tool.name }));
    setWithdrawing(false);
    props.onDone();
  });
  const acceptable = tool.state === "new" || tool.state === "changed";
  return (
    <article class="settings-tool">
      <div class="settings-badges">
        <h3>{tool.name}</h3>
        <Badge tone={TONES[tool.state]}>{word("settings", `tool_${tool.state}`)}</Badge>
      </div>
      {tool.description && <p>{tool.description}</p>}
      {tool.reason && <p class="settings-warning">{tool.reason}</p>}
      {tool.diff && <Diff label={t("settings.diff")} patch={tool.diff} />}
      {tool.parameters && (
        <details>
          <summary>{t("settings.parameters")}</summary>
          <pre class="settings-text" tabIndex={0}>{JSON.stringify(tool.parameters, null, 2)}</pre>
        </details>
      )}
      {tool.state !== "unusable" && (
        <div class="filters">
          {tool.state !== "gone" && (
            <Select label={t("settings.risk")} value={risk} options={RISKS.map((value) => ({ value, label: word("settings", `risk_${value}`) }))} onChange={(event) => setRisk(event.currentTarget.value)} />
          )}
          {acceptable && (
            <Button kind="primary" busy={accept.running} onClick={() => void accept.run()}>
              {t("settings.accept")}
            </Button>
          )}
          {tool.state === "accepted" && (
            <Button busy={judge.running} disabled={risk === String(accepted?.risk)} onClick={() => void judge.run([])}>
              {t("settings.judge")}
            </Button>
          )}
          {accepted && (
            <Button kind="danger" onClick={() => setWithdrawing(true)}>
              {t("settings.withdraw")}
            </Button>
          )}
        </div>
      )}
      {(accept.problem ?? judge.problem) && !withdrawing && <ProblemNote problem={(accept.problem ?? judge.problem)!} />}
      {withdrawing && (
        <Confirm title={t("settings.withdraw_title", { name: tool.name })} act={t("settings.withdraw")} busy={judge.running} problem={judge.problem} onConfirm={() => void judge.run([tool.name])} onClose={() => setWithdrawing(false)}>
          <p>{t("settings.withdraw_text")}</p>
        </Confirm>
      )}
    </article>
  );
}
