/** What people and administrators set: keys, users, limits, retention, models, outside tools, agents, policy, profile,
 * and what was done. */

import { useLocation } from "preact-iso";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";

import { administers, useMe } from "../../session";
import { type Key, t } from "../../text";
import { Page, Tabs } from "../../ui/layout";
import { Agents } from "./agents";
import { Audit } from "./audit";
import { Keys } from "./keys";
import { Models } from "./models";
import { Outside } from "./outside";
import { NotAllowed, ROOT } from "./parts";
import { Policy } from "./policy";
import { Profile } from "./profile";
import { Retention } from "./retention";
import { Usage } from "./usage";
import { Users } from "./users";

interface Part {
  name: string;
  title: Key;
  /** Draws it; the rest of the address goes in. */
  show: ComponentType<{ rest: string[] }>;
  /** Whether administrators alone may see it. */
  admin?: boolean;
}

const PARTS: Part[] = [
  { name: "profile", title: "settings.profile", show: Profile },
  { name: "usage", title: "settings.usage", show: Usage },
  { name: "keys", title: "settings.keys", show: Keys, admin: true },
  { name: "users", title: "settings.users", show: Users, admin: true },
  { name: "agents", title: "settings.agents", show: Agents },
  { name: "tools", title: "settings.tools", show: Outside, admin: true },
  { name: "policy", title: "settings.policy", show: Policy },
  { name: "models", title: "settings.models", show: Models },
  { name: "audit", title: "settings.audit", show: Audit, admin: true },
  { name: "retention", title: "settings.retention", show: Retention, admin: true },
];

export default function Settings() {
  const { path, route } = useLocation();
  const me = useMe();
  useEffect(() => {
    if (path === ROOT || path === `${ROOT}/`) route(`${ROOT}/profile`, true);
  }, [path]);
  const [name = "", ...rest] = path.slice(ROOT.length + 1).split("/").filter(Boolean).map(decodeURIComponent);
  const part = PARTS.find((each) => each.name === name) ?? PARTS[0];
  return (
    <Page title={t("shell.settings")} lead={part && t(`${part.title}_lead` as Key)}>
      <Tabs label={t("settings.parts")} tabs={PARTS.map((each) => ({ href: `${ROOT}/${each.name}`, label: t(each.title) }))} />
      {part && (part.admin && !administers(me.role) ? <NotAllowed /> : <part.show rest={rest} />)}
    </Page>
  );
}
