/** Who uses the tenant, and erasing somebody with all that is held of them. */

import { useState } from "preact/hooks";

import { api, data, type Schemas } from "../../api/client";
import { useAct, usePages, useRead } from "../../api/use";
import { ago, dollars, number, short } from "../../format";
import { useMe } from "../../session";
import { t, word } from "../../text";
import { Button, TextField } from "../../ui/controls";
import { Confirm, useToast } from "../../ui/dialog";
import { Badge, Card, Empty, Loaded, Time } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { ROOT, When } from "./parts";

type Sum = Schemas["UsageSum"];

const PAGE = 50;

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
  const [{ q = "" }, change] = useParameters();
  const users = usePages(
    async (after, signal) => {
      const query = { limit: PAGE, ...(q ? { text: q } : {}), ...(after ? { after } : {}) };
      const page = await data(api.GET("/api/v1/users", { params: { query }, signal }));
      return { items: page.users, next: page.next ?? null };
    },
    [q, props.round],
  );
  const usage = useRead(async (signal) => {
    const { sums } = await data(api.GET("/api/v1/usage", { params: { query: { by: ["user"] } }, signal }));
    return new Map(sums.map((sum) => [sum.user, sum]));
  }, []);
  const tokens = (sum: Sum | undefined) => (sum ? sum.input_tokens + sum.output_tokens : 0);
  return (
    <Card title={t("settings.users")}>
      <div class="filters" role="search" aria-label={t("settings.filter")}>
        <TextField label={t("settings.user")} type="search" maxLength={200} value={q} onChange={(event) => change({ q: event.currentTarget.value.trim() })} />
      </div>
      <Loaded of={users} lines={6}>
        {(rows) =>
          rows.length ? (
            <Table
              label={t("settings.users")}
              rows={rows}
              id={(user) => user.user}
              more={users.more}
              columns={[
                { id: "user", label: t("settings.user"), show: (user) => <a href={`${ROOT}/audit?user=${encodeURIComponent(user.user)}`}>{user.user}</a>, by: (user) => user.user },
                { id: "role", label: t("settings.role"), show: (user) => (user.roles ?? []).map((role) => word("settings", `role_${role}`)).join(", ") || "–" },
                { id: "seen", label: t("settings.last_seen"), show: (user) => (user.last_seen ? <Time at={user.last_seen} show={ago} /> : t("settings.never_seen")), by: (user) => user.last_seen ?? "" },
                { id: "talks", label: t("settings.conversations"), show: (user) => number(user.conversations ?? 0), by: (user) => user.conversations ?? 0, number: true },
                { id: "keys", label: t("settings.keys"), show: (user) => number(user.keys ?? 0), by: (user) => user.keys ?? 0, number: true },
                { id: "tokens", label: t("settings.tokens_month"), show: (user) => short(tokens(usage.data?.get(user.user))), by: (user) => tokens(usage.data?.get(user.user)), number: true },
                { id: "usd", label: t("settings.cost_month"), show: (user) => dollars(usage.data?.get(user.user)?.cost_usd ?? 0), by: (user) => usage.data?.get(user.user)?.cost_usd ?? 0, number: true },
                {
                  id: "act",
                  label: t("shell.actions"),
                  show: (user) =>
                    user.user !== me.user && (
                      <Button kind="quiet" aria-label={`${t("settings.erase")} ${user.user}`} onClick={() => props.onErase(user.user)}>
                        {t("settings.erase")}
                      </Button>
                    ),
                },
              ]}
            />
          ) : (
            <Empty title={t(q ? "settings.no_user_found" : "settings.no_users")} />
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
