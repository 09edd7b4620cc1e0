import { Page } from "../../ui/layout";
import { t } from "../../text";

export default function Graph() {
  return <Page title={t("shell.graph")}>{null}</Page>;
}
