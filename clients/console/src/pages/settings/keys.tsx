/** Keys of the tenant: who has which, making one, and revoking it. */

import { KeyRound, Plus } from "lucide-preact";
import { useState } from "preact/hooks";

import { api, data, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { useMe } from "../../session";
import { t, word } from "../../text";
import { Button, CopyButton, Select, TextField } from "../../ui/controls";
import { Confirm, Dialog, useToast } from "../../ui/dialog";
import { Badge, Card, Empty, Loaded, ProblemNote } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { When } from "./parts";

type KeyShown = Schemas["KeyShown"];
const ROLES = ["reader", "member", "admin", "owner"] as const;
const AGENTS = ["noor", "maestro", "curator", "discuss", "decisions", "execute", "mind", "editor"] as const;
const SCOPES = ["phronesis:read", "phronesis:write", "act_for_users", "operator"] as const;
/** Keys that are read at once. */
const MOST = 200;

function stateOf(key: KeyShown): "good" | "revoked" | "expired" {
  if (key.revoked_at) return "revoked";
  return key.expires_at && new Date(key.expires_at) < new Date() ? "expired" : "good";
}

export function Keys() {
  const me = useMe();
  const [chosen, change] = useParameters();
  const [open, setOpen] = useState<"key" | "bus">();
  const [revoking, setRevoking] = useState<KeyShown>();
  const [text, setText] = useState(chosen.q ?? "");
  const keys = useRead(async (signal) => (await data(api.GET("/api/v1/keys", { params: { query: { limit: MOST } }, signal }))).keys, []);
  return (
    <Card
      title={t("settings.keys")}
      actions={
        <>
          {me.scopes.includes("operator") && <Button onClick={() => setOpen("bus")}>{t("settings.bus_key_make")}</Button>}
          <Button kind="primary" icon={<Plus aria-hidden="true" />} onClick={() => setOpen("key")}>
            {t("settings.key_make")}
          </Button>
        </>
      }
    >
      <div class="filters">
        <TextField
          label={t("settings.filter")}
          type="search"
          placeholder={t("settings.filter_keys")}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onChange={(event) => change({ q: event.currentTarget.value.trim() })}
        />
        <Select
          label={t("settings.state")}
          value={chosen.state ?? ""}
          options={["", "all"].map((value) => ({ value, label: t(value ? "shell.all" : "settings.state_good") }))}
          onChange={(event) => change({ state: event.currentTarget.value })}
        />
      </div>
      <Loaded of={keys}>
        {(all) => {
          const sought = text.trim().toLowerCase();
          const shown = all
            .filter((key) => chosen.state === "all" || stateOf(key) === "good")
            .filter((key) => [key.user, key.tenant, key.prefix, key.role].some((each) => each.toLowerCase().includes(sought)));
          return shown.length ? (
            <Table
              label={t("settings.keys")}
              rows={shown}
              id={(key) => key.id}
              sort="-made"
              columns={[
                { id: "user", label: t("settings.user"), show: (key) => <KeyName of={key} mine={key.id === me.key} />, by: (key) => key.user },
                { id: "role", label: t("settings.role"), show: (key) => word("settings", `role_${key.role}`), by: (key) => ROLES.indexOf(key.role) },
                { id: "may", label: t("settings.may"), show: (key) => <Rights of={key} /> },
                { id: "made", label: t("settings.made"), show: (key) => <When at={key.created_at} />, by: (key) => key.created_at },
                { id: "ends", label: t("settings.ends"), show: (key) => <Ends of={key} />, by: (key) => key.expires_at ?? "9" },
                {
                  id: "act",
                  label: t("shell.actions"),
                  show: (key) =>
                    stateOf(key) === "good" && (
                      <Button kind="quiet" aria-label={`${t("settings.revoke")} ${key.prefix}`} onClick={() => setRevoking(key)}>
                        {t("settings.revoke")}
                      </Button>
                    ),
                },
              ]}
            />
          ) : (
            <Empty title={t("settings.no_keys")} />
          );
        }}
      </Loaded>
      {keys.data && keys.data.length >= MOST && <p class="note">{t("settings.newest_keys", { count: MOST })}</p>}
      {open === "key" && <MakeKey onClose={() => setOpen(undefined)} onDone={keys.reload} />}
      {open === "bus" && <MakeBusKey onClose={() => setOpen(undefined)} onDone={keys.reload} />}
      {revoking && <Revoke of={revoking} mine={revoking.id === me.key} onClose={() => setRevoking(undefined)} onDone={keys.reload} />}
    </Card>
  );
}

function KeyName(props: { of: KeyShown; mine: boolean }) {
  return (
    <span class="settings-stack">
      <span>
        {props.of.user} {props.mine && <Badge tone="info">{t("settings.this_key")}</Badge>}
      </span>
      <span class="note">
        <code>{props.of.prefix}…</code> {props.of.tenant}
      </span>
    </span>
  );
}

function Rights(props: { of: KeyShown }) {
  const { agents, scopes, tools, bus } = props.of;
  const words = [...agents, ...scopes, ...(tools ? [t("settings.tools_count", { count: tools.length })] : []), ...(bus ? [t("settings.bus")] : [])];
  return words.length ? (
    <span class="settings-badges">
      {words.map((each) => (
        <Badge key={each}>{each}</Badge>
      ))}
    </span>
  ) : (
    <>–</>
  );
}

function Ends(props: { of: KeyShown }) {
  const { revoked_at: revoked, expires_at: expires } = props.of;
  if (revoked) {
    return (
      <>
        <Badge tone="bad">{t("settings.revoked")}</Badge> <When at={revoked} />
      </>
    );
  }
  return expires ? <When at={expires} /> : <>{t("settings.until_revoked")}</>;
}

function Choices(props: { legend: string; of: readonly string[]; chosen: string[]; onChange: (chosen: string[]) => void; hint?: string }) {
  const toggle = (each: string) => props.onChange(props.chosen.includes(each) ? props.chosen.filter((other) => other !== each) : [...props.chosen, each]);
  return (
    <fieldset class="settings-choices">
      <legend>{props.legend}</legend>
      {props.of.map((each) => (
        <label key={each}>
          <input type="checkbox" checked={props.chosen.includes(each)} onChange={() => toggle(each)} />
          {each}
        </label>
      ))}
      {props.hint && <p class="field-hint">{props.hint}</p>}
    </fieldset>
  );
}

/** What the viewer may give away: no scope that their own key lacks but `act_for_users`, and no owner unless they are one. */
function useGivable() {
  const me = useMe();
  const operator = me.scopes.includes("operator");
  return {
    operator,
    roles: ROLES.filter((role) => role !== "owner" || me.role === "owner" || operator).map((value) => ({ value, label: word("settings", `role_${value}`) })),
    scopes: SCOPES.filter((scope) => operator || scope === "act_for_users" || me.scopes.includes(scope)),
  };
}

function MakeKey(props: { onClose: () => void; onDone: () => void }) {
  const me = useMe();
  const givable = useGivable();
  const [user, setUser] = useState("");
  const [tenant, setTenant] = useState(me.tenant);
  const [role, setRole] = useState("member");
  const [agents, setAgents] = useState<string[]>(["noor"]);
  const [scopes, setScopes] = useState<string[]>([]);
  const [days, setDays] = useState("90");
  const [tools, setTools] = useState("");
  const [made, setMade] = useState<Schemas["KeyMade"]>();
  const administrator = role === "owner" || role === "admin";
  const act = useAct(async () => {
    const only = tools.split(/[\s,]+/).filter(Boolean);
    const body = {
      user: user.trim(),
      role: role as Schemas["Role"],
      scopes,
      agents: administrator ? [] : (agents as Schemas["Agent"][]),
      ...(days && { days: Number(days) }),
      ...(tenant.trim() && { tenant: tenant.trim() }),
      ...(only.length && { tools: only }),
    };
    setMade(await data(api.POST("/api/v1/keys", { body: body as Schemas["KeyGiven"] })));
    props.onDone();
  });
  if (made) return <Secret title={t("settings.key_made")} rows={[[t("settings.key"), made.key]]} onClose={props.onClose} />;
  return (
    <Dialog
      title={t("settings.key_make")}
      onClose={props.onClose}
      actions={
        <>
          <Button onClick={props.onClose}>{t("shell.cancel")}</Button>
          <Button kind="primary" icon={<KeyRound aria-hidden="true" />} busy={act.running} disabled={!user.trim()} onClick={() => void act.run()}>
            {t("settings.make")}
          </Button>
        </>
      }
    >
      <div class="settings-two">
        <TextField label={t("settings.user")} value={user} autofocus autocomplete="off" onInput={(event) => setUser(event.currentTarget.value)} />
        {givable.operator && <TextField label={t("settings.tenant")} value={tenant} onInput={(event) => setTenant(event.currentTarget.value)} />}
        <Select label={t("settings.role")} hint={word("settings", `role_${role}_help`)} value={role} options={givable.roles} onChange={(event) => setRole(event.currentTarget.value)} />
        <TextField label={t("settings.days")} hint={t("settings.days_hint")} type="number" min={1} max={3660} value={days} onInput={(event) => setDays(event.currentTarget.value)} />
      </div>
      {!administrator && <Choices legend={t("settings.rights_of")} of={AGENTS} chosen={agents} onChange={setAgents} />}
      <Choices legend={t("settings.scopes")} of={givable.scopes} chosen={scopes} onChange={setScopes} hint={t("settings.scopes_hint")} />
      <TextField label={t("settings.only_tools")} hint={t("settings.only_tools_hint")} value={tools} autocomplete="off" onInput={(event) => setTools(event.currentTarget.value)} />
      {act.problem && <ProblemNote problem={act.problem} />}
    </Dialog>
  );
}

function MakeBusKey(props: { onClose: () => void; onDone: () => void }) {
  const me = useMe();
  const [user, setUser] = useState("");
  const [tenant, setTenant] = useState(me.tenant);
  const [role, setRole] = useState("member");
  const [agents, setAgents] = useState<string[]>(["noor"]);
  const [days, setDays] = useState("90");
  const [made, setMade] = useState<Schemas["BusKeyMade"]>();
  const { roles } = useGivable();
  const act = useAct(async () => {
    const body = { user: user.trim(), tenant: tenant.trim(), role: role as Schemas["Role"], days: Number(days), agents: agents as Schemas["Agent"][] };
    setMade(await data(api.POST("/api/v1/keys/bus", { body })));
    props.onDone();
  });
  if (made) {
    const rows: [string, string][] = [
      [t("settings.bus_servers"), made.servers.join(", ")],
      [t("settings.bus_user"), made.nats_user],
      [t("settings.bus_password"), made.nats_password],
      [t("settings.bus_token"), made.token],
      [t("settings.bus_inbox"), made.inbox],
    ];
    return <Secret title={t("settings.key_made")} rows={rows} onClose={props.onClose} />;
  }
  return (
    <Dialog
      title={t("settings.bus_key_make")}
      onClose={props.onClose}
      actions={
        <>
          <Button onClick={props.onClose}>{t("shell.cancel")}</Button>
          <Button kind="primary" busy={act.running} disabled={!user.trim() || !tenant.trim()} onClick={() => void act.run()}>
            {t("settings.make")}
          </Button>
        </>
      }
    >
      <p class="note">{t("settings.bus_hint")}</p>
      <div class="settings-two">
        <TextField label={t("settings.user")} value={user} autofocus autocomplete="off" onInput={(event) => setUser(event.currentTarget.value)} />
        <TextField label={t("settings.tenant")} value={tenant} onInput={(event) => setTenant(event.currentTarget.value)} />
        <Select label={t("settings.role")} value={role} options={roles} onChange={(event) => setRole(event.currentTarget.value)} />
        <TextField label={t("settings.days")} type="number" min={1} max={366} value={days} onInput={(event) => setDays(event.currentTarget.value)} />
      </div>
      <Choices legend={t("settings.rights_of")} of={AGENTS} chosen={agents} onChange={setAgents} />
      {act.problem && <ProblemNote problem={act.problem} />}
    </Dialog>
  );
}

/** Shows secrets this once. */
function Secret(props: { title: string; rows: [string, string][]; onClose: () => void }) {
  return (
    <Dialog
      title={props.title}
      onClose={props.onClose}
      actions={
        <Button kind="primary" onClick={props.onClose}>
          {t("settings.kept_it")}
        </Button>
      }
    >
      <p>{t("settings.once")}</p>
      <dl class="settings-secret">
        {props.rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <code>{value}</code>
              <CopyButton text={value} />
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

function Revoke(props: { of: KeyShown; mine: boolean; onClose: () => void; onDone: () => void }) {
  const toast = useToast();
  const { id, prefix, user } = props.of;
  const act = useAct(async () => {
    await data(api.DELETE("/api/v1/keys/{id}", { params: { path: { id } } }));
    toast(t("settings.key_revoked", { prefix }));
    props.onClose();
    props.onDone();
  });
  return (
    <Confirm title={t("settings.revoke_title", { prefix })} act={t("settings.revoke")} busy={act.running} problem={act.problem} onConfirm={() => void act.run()} onClose={props.onClose}>
      <p>{t("settings.revoke_text", { user })}</p>
      {props.mine && <p class="settings-warning">{t("settings.revoke_mine")}</p>}
    </Confirm>
  );
}
