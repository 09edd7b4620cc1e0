import { Page } from "../../ui/layout";
import { t } from "../../text";

export default function Instructions() {
  return <Page title={t("shell.instructions")}>{null}</Page>;
}
