/** What is remembered of the viewer: single memories, facts, documents, what was forgotten, and taking all of it along. */

import { useLocation } from "preact-iso";
import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";

import { Button } from "../../ui/controls";
import { Page, Tabs } from "../../ui/layout";
import { t } from "../../text";
import { AddMemory } from "./add";
import { Browse } from "./browse";
import { Documents } from "./documents";
import { FactPage, Facts } from "./facts";
import { MemoryPage } from "./one";
import { mayWrite, ROOT } from "./parts";
import { Transfer } from "./transfer";
import { useMe } from "../../session";

export default function Memory() {
  const { path, route } = useLocation();
  const me = useMe();
  const [adding, setAdding] = useState(false);
  const [part = "", id] = path.slice(ROOT.length + 1).split("/").map(decodeURIComponent);
  const own = !["", "facts", "documents", "transfer"].includes(part);
  if (own) return <MemoryPage id={part} />;
  if (part === "facts" && id) return <FactPage id={id} />;
  return (
    <Page
      title={t("shell.memory")}
      lead={t("memory.lead")}
      actions={
        mayWrite(me) && (
          <Button kind="primary" icon={<Plus aria-hidden="true" />} onClick={() => setAdding(true)}>
            {t("memory.add")}
          </Button>
        )
      }
    >
      <Tabs
        label={t("memory.parts")}
        tabs={[
          { href: ROOT, label: t("memory.tab_memories") },
          { href: `${ROOT}/facts`, label: t("memory.tab_facts") },
          { href: `${ROOT}/documents`, label: t("memory.tab_documents") },
          { href: `${ROOT}/transfer`, label: t("memory.tab_transfer") },
        ]}
      />
      {part === "facts" ? <Facts /> : part === "documents" ? <Documents /> : part === "transfer" ? <Transfer /> : <Browse />}
      {adding && <AddMemory onClose={() => setAdding(false)} onAdded={(added) => route(`${ROOT}/${added}`)} />}
    </Page>
  );
}
