/** Which language model answers, and what its endpoint was found to be able to do. */

import { Check, X } from "lucide-preact";

import { callTool } from "../../api/client";
import { useRead } from "../../api/use";
import { number } from "../../format";
import { administers, type Me, useMe } from "../../session";
import { t } from "../../text";
import { Badge, Card, Facts, Loaded } from "../../ui/layout";
import { Table } from "../../ui/table";
import { NotAllowed } from "./parts";

interface Ability {
  name: string;
  reached: boolean;
  structured?: string | null;
  tools: boolean;
  streaming: boolean;
  context_tokens?: number | null;
  problem: string;
}

interface ModelsFound {
  reasoner: string;
  profile: string;
  endpoint: string;
  context_tokens?: number | null;
  models: Ability[];
}

function Sign(props: { yes: boolean }) {
  return props.yes ? <Check aria-label={t("shell.yes")} /> : <X aria-label={t("shell.no")} />;
}

/** Whether somebody may ask for the models: it is a tool of the analyst maestro. */
function mayAsk(me: Me): boolean {
  return administers(me.role) || me.agents.includes("maestro");
}

export function Models() {
  return mayAsk(useMe()) ? <Found /> : <NotAllowed />;
}

function Found() {
  const found = useRead((signal) => callTool<ModelsFound>("models.get", {}, signal), []);
  return (
    <Card title={t("settings.models")}>
      <Loaded of={found}>
        {(models) => (
          <>
            <Facts
              of={[
                [t("settings.reasoner"), models.reasoner === "extractive" ? t("settings.extractive") : models.reasoner],
                [t("settings.endpoint"), models.endpoint || "–"],
                [t("settings.model_profile"), models.profile || "–"],
                [t("settings.context"), models.context_tokens ? number(models.context_tokens) : "–"],
              ]}
            />
            {models.models.length ? (
              <Table
                label={t("settings.models")}
                rows={models.models}
                id={(model) => model.name}
                columns={[
                  { id: "name", label: t("settings.model"), show: (model) => model.name, by: (model) => model.name },
                  {
                    id: "state",
                    label: t("settings.state"),
                    show: (model) => (model.reached ? <Badge tone="good">{t("settings.reached")}</Badge> : <Badge tone="bad">{model.problem || t("settings.not_reached")}</Badge>),
                  },
                  { id: "structured", label: t("settings.structured"), show: (model) => model.structured ?? "–" },
                  { id: "tools", label: t("settings.calls_tools"), show: (model) => <Sign yes={model.tools} /> },
                  { id: "streaming", label: t("settings.streams"), show: (model) => <Sign yes={model.streaming} /> },
                  { id: "context", label: t("settings.context"), show: (model) => (model.context_tokens ? number(model.context_tokens) : "–"), number: true },
                ]}
              />
            ) : (
              <p class="note">{t("settings.no_models")}</p>
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}
