/** Parts that several pages of the settings show. */

import { Lock } from "lucide-preact";

import { moment } from "../../format";
import { useMe } from "../../session";
import { t } from "../../text";
import { Card, Empty, Time } from "../../ui/layout";

export const ROOT = "/console/settings";

/** What is shown in place of a page that the viewer may not use: who may, and what to do. */
export function NotAllowed() {
  const me = useMe();
  return (
    <Card>
      <Empty title={t("settings.not_allowed")} icon={<Lock aria-hidden="true" />}>
        <p>{t("settings.not_allowed_hint", { role: me.role })}</p>
      </Empty>
    </Card>
  );
}

export function When(props: { at: string }) {
  return <Time at={props.at} show={moment} />;
}

/** A share as a bar; what it says stands beside it. */
export function Bar(props: { share: number; tone?: "warn" | "bad" | undefined }) {
  return (
    <span class={`settings-bar ${props.tone ?? ""}`} aria-hidden="true">
      <span style={{ width: `${Math.max(0, Math.min(1, props.share)) * 100}%` }} />
    </span>
  );
}
