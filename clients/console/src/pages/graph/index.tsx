/** The graph: explore the twin and the constitution, a node of the twin with its years, and what is missing. */

import { useMemo } from "preact/hooks";
import { useLocation } from "preact-iso";

import { useRead } from "../../api/use";
import { t } from "../../text";
import { Loaded, Page, Tabs } from "../../ui/layout";
import { Explore } from "./explore";
import { Gaps } from "./gaps";
import { constitution, HOME, readTypes, readVocabulary, twin, type Vocabulary } from "./model";
import { TwinNode } from "./node";
import { Survey } from "./survey";

function TwinExplorer(props: { vocabulary: Vocabulary }) {
  const source = useMemo(() => twin(props.vocabulary), [props.vocabulary]);
  return <Explore of="twin" source={source} />;
}

function ConstitutionOf(props: { types: string[] }) {
  const source = useMemo(() => constitution(props.types), [props.types]);
  return <Explore of="constitution" source={source} />;
}

function ConstitutionExplorer() {
  const types = useRead(readTypes, []);
  return <Loaded of={types}>{(found) => <ConstitutionOf types={found} />}</Loaded>;
}

export default function Graph() {
  const { path } = useLocation();
  const [part = "", id, year] = path.slice(HOME.length + 1).split("/").map(decodeURIComponent);
  const vocabulary = useRead(readVocabulary, []);
  const ofConstitution = part === "constitution";
  if (part && id && year) {
    return <Loaded of={vocabulary}>{(found) => <TwinNode key={`${part}/${id}`} vocabulary={found} reference={{ type: part, id, year: Number(year) }} />}</Loaded>;
  }
  return (
    <Page title={t("shell.graph")} lead={t("graph.lead")} wide>
      <Tabs
        label={t("graph.parts")}
        tabs={[
          { href: HOME, label: t("graph.twin") },
          { href: `${HOME}/constitution`, label: t("shell.constitution") },
          { href: `${HOME}/survey`, label: t("graph.survey") },
          { href: `${HOME}/gaps`, label: t("graph.gaps") },
        ]}
      />
      {ofConstitution ? (
        <ConstitutionExplorer />
      ) : (
        <Loaded of={vocabulary}>{(found) => (part === "gaps" ? <Gaps vocabulary={found} /> : part === "survey" ? <Survey vocabulary={found} /> : <TwinExplorer vocabulary={found} />)}</Loaded>
      )}
    </Page>
  );
}
