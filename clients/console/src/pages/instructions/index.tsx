import { useLocation } from "preact-iso";
import { Lock } from "lucide-preact";

import { BASE } from "../../pages";
import { useMe } from "../../session";
import { t } from "../../text";
import { Empty, Page, Tabs } from "../../ui/layout";
import { Coverage } from "./coverage";
import { Experiments } from "./experiments";
import { Releases } from "./releases";
import { mayEdit } from "./rights";
import { TextPage } from "./text";
import { Texts } from "./texts";

const HOME = `${BASE}/instructions`;
const PARTS = { releases: Releases, experiments: Experiments, coverage: Coverage };

export default function Instructions() {
  const me = useMe();
  const { path, query } = useLocation();
  const [part = ""] = path.slice(HOME.length + 1).split("/");
  if (!mayEdit(me)) {
    return (
      <Page title={t("shell.instructions")}>
        <Empty title={t("instructions.not_yours")} icon={<Lock aria-hidden="true" />}>
          <p>{t("instructions.not_yours_hint")}</p>
        </Empty>
      </Page>
    );
  }
  if (part === "text" && query["tag"]) return <TextPage key={query["tag"]} tag={query["tag"]} />;
  const Part = PARTS[part as keyof typeof PARTS] ?? Texts;
  return (
    <Page title={t("shell.instructions")} lead={t("instructions.lead")} wide>
      <Tabs
        label={t("instructions.parts")}
        tabs={[
          { href: HOME, label: t("instructions.texts") },
          { href: `${HOME}/releases`, label: t("instructions.releases") },
          { href: `${HOME}/experiments`, label: t("instructions.experiments") },
          { href: `${HOME}/coverage`, label: t("instructions.coverage") },
        ]}
      />
      <Part />
    </Page>
  );
}
