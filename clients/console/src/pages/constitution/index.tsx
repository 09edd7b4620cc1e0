import { Page } from "../../ui/layout";
import { t } from "../../text";

export default function Constitution() {
  return <Page title={t("shell.constitution")}>{null}</Page>;
}
