/** Who uses the tenant, and erasing somebody with all that is held of them. */

import { useState } from "preact/hooks";

import { api, data, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { dollars, number, short } from "../../format";
import { useMe } from "../../session";
import { t, word } from "../../text";
import { Button } from "../../ui/controls";
import { Confirm, useToast } from "../../ui/dialog";
import { Badge, Card, Empty, Loaded } from "../../ui/layout";
import { Table } from "../../ui/table";
import { When } from "./parts";

interface User {
  name: string;
  roles: string[];
  keys: number;
  tokens: number;
  usd: number;
}

/** Everybody of a tenant who has a key that is good, or had models called this month. */
async function readUsers(tenant: string, signal: AbortSignal): Promise<User[]> {
  const [{ keys }, { sums }] = await Promise.all([
    data(api.GET("/api/v1/keys", { params: { query: { tenant, limit: 200 } }, signal })),
    data(api.GET("/api/v1/usage", { params: { query: { by: ["user"] } }, signal })),
  ]);
  const users = new Map<string, User>();
  const user = (name: string) => {
    const found = users.get(name) ?? { name, roles: [], keys: 0, tokens: 0, usd: 0 };
    users.set(name, found);
    return found;
  };
  for (const key of keys.filter((each) => !each.revoked_at && each.tenant === tenant)) {
    const found = user(key.user);
    found.keys += 1;
    if (!found.roles.includes(key.role)) found.roles.push(key.role);
  }
  for (const sum of sums) {
    const found = user(sum.user ?? "");
    found.tokens += sum.input_tokens + sum.output_tokens;
    found.usd += sum.cost_usd;
  }
  return [...users.values()].filter((each) => each.name).sort((one, other) => one.name.localeCompare(other.name));
}

export function Users() {
  const [erasing, setErasing] = useState<string>();
  const [round, setRound] = useState(0);
  return (
    <>
      <UserList onErase={setErasing} round={round} />
      <Erasures round={round} />
      {erasing && <Erase user={erasing} onClose={() => setErasing(undefined)} onDone={() => setRound(round + 1)} />}
    </>
  );
}

function UserList(props: { onErase: (user: string) => void; round: number }) {
  const me = useMe();
  const users = useRead((signal) => readUsers(me.tenant, signal), [me.tenant, props.round]);
  return (
    <Card title={t("settings.users")}>
      <Loaded of={users}>
        {(rows) =>
          rows.length ? (
            <Table
              label={t("settings.users")}
              rows={rows}
              id={(user) => user.name}
              columns={[
                { id: "user", label: t("settings.user"), show: (user) => user.name, by: (user) => user.name },
                { id: "role", label: t("settings.role"), show: (user) => user.roles.map((role) => word("settings", `role_${role}`)).join(", ") || "–" },
                { id: "keys", label: t("settings.keys"), show: (user) => number(user.keys), by: (user) => user.keys, number: true },
                { id: "tokens", label: t("settings.tokens_month"), show: (user) => short(user.tokens), by: (user) => user.tokens, number: true },
                { id: "usd", label: t("settings.cost_month"), show: (user) => dollars(user.usd), by: (user) => user.usd, number: true },
                {
                  id: "act",
                  label: t("shell.actions"),
                  show: (user) =>
                    user.name !== me.user && (
                      <Button kind="quiet" aria-label={`${t("settings.erase")} ${user.name}`} onClick={() => props.onErase(user.name)}>
                        {t("settings.erase")}
                      </Button>
                    ),
                },
              ]}
            />
          ) : (
            <Empty title={t("settings.no_users")} />
          )
        }
      </Loaded>
    </Card>
  );
}

function CountList(props: { of: Record<string, Record<string, number>> }) {
  const rows = Object.entries(props.of).flatMap(([service, counts]) => Object.entries(counts).map(([what, count]) => ({ service, what, count })));
  const full = rows.filter((row) => row.count > 0);
  if (!full.length) return <p class="note">{t("settings.nothing")}</p>;
  return (
    <ul class="settings-counts">
      {full.map((row) => (
        <li key={`${row.service}.${row.what}`}>
          <strong>{number(row.count)}</strong> {row.what.replaceAll("_", " ")} <span class="note">{row.service}</span>
        </li>
      ))}
    </ul>
  );
}

function Erase(props: { user: string; onClose: () => void; onDone: () => void }) {
  const { user } = props;
  const toast = useToast();
  const path = { user_id: user };
  const preview = useRead(
    async (signal) => (await data(api.DELETE("/api/v1/users/{user_id}", { params: { path, query: { dry_run: true } }, signal }))) as Schemas["UserPreview"],
    [user],
  );
  const act = useAct(async () => {
    await data(api.DELETE("/api/v1/users/{user_id}", { params: { path } }));
    toast(t("settings.erasure_begun", { user }));
    props.onClose();
    props.onDone();
  });
  return (
    <Confirm
      title={t("settings.erase_title", { user })}
      act={t("settings.erase")}
      word={user}
      busy={act.running || !preview.data}
      problem={act.problem}
      onConfirm={() => void act.run()}
      onClose={props.onClose}
    >
      <p>{t("settings.erase_text")}</p>
      <Loaded of={preview} lines={3}>
        {(found) => (
          <>
            <h3>{t("settings.erase_held")}</h3>
            <CountList of={found.held} />
            <h3>{t("settings.erase_kept")}</h3>
            <CountList of={found.kept} />
          </>
        )}
      </Loaded>
    </Confirm>
  );
}

function Erasures(props: { round: number }) {
  const [pending, setPending] = useState(false);
  const erasures = useRead(
    async (signal) => {
      const found = (await data(api.GET("/api/v1/erasures", { params: { query: { limit: 50 } }, signal }))).erasures;
      setPending(found.some((each) => each.state === "pending"));
      return found;
    },
    [props.round],
    pending ? 3 : undefined,
  );
  return (
    <Card title={t("settings.erasures")}>
      <Loaded of={erasures}>
        {(rows) =>
          rows.length ? (
            <div aria-live="polite">
              <Table
                label={t("settings.erasures")}
                rows={rows}
                id={(each) => each.erasure_id}
                columns={[
                  { id: "user", label: t("settings.user"), show: (each) => each.user },
                  { id: "state", label: t("settings.state"), show: (each) => <Badge tone={each.state === "complete" ? "good" : "warn"}>{word("settings", `state_${each.state}`)}</Badge> },
                  { id: "at", label: t("settings.asked_at"), show: (each) => <When at={each.requested_at} /> },
                  { id: "by", label: t("settings.by"), show: (each) => each.requested_by },
                  { id: "proof", label: t("settings.proof"), show: (each) => (each.digest ? <code title={each.digest}>{each.digest.slice(0, 12)}…</code> : "–") },
                ]}
              />
            </div>
          ) : (
            <p class="note">{t("settings.no_erasures")}</p>
          )
        }
      </Loaded>
    </Card>
  );
}
