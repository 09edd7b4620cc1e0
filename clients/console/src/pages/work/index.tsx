import { useLocation } from "preact-iso";

import { api, data } from "../../api/client";
import { useRead } from "../../api/use";
import { BASE } from "../../pages";
import { t } from "../../text";
import { Page, Tabs } from "../../ui/layout";
import { Approvals } from "./approvals";
import { Schedules } from "./schedules";
import { Strategies } from "./strategies";
import { TaskPage } from "./task";
import { TaskList } from "./tasks";

const HOME = `${BASE}/work`;

/** How many calls wait for the viewer; read now and then, so that the tab says it. */
function usePending() {
  const query = { status: "pending" as const, limit: 100 };
  return useRead(async (signal) => (await data(api.GET("/api/v1/approvals", { params: { query }, signal }))).approvals.length, [], 15);
}

export default function Work() {
  const [part = "", id] = useLocation().path.slice(HOME.length + 1).split("/");
  const pending = usePending();
  if (part === "tasks" && id) return <TaskPage key={id} id={decodeURIComponent(id)} />;
  return (
    <Page title={t("shell.work")} lead={t("work.lead")} wide>
      <Tabs
        label={t("work.parts")}
        tabs={[
          { href: HOME, label: t("work.tasks") },
          { href: `${HOME}/approvals`, label: t("work.approvals"), ...(pending.data ? { count: pending.data } : {}) },
          { href: `${HOME}/schedules`, label: t("work.schedules") },
          { href: `${HOME}/strategies`, label: t("work.strategies") },
        ]}
      />
      {part === "approvals" ? <Approvals answered={pending.reload} /> : part === "schedules" ? <Schedules /> : part === "strategies" ? <Strategies /> : <TaskList />}
    </Page>
  );
}
