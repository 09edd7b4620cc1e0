import { Page } from "../../ui/layout";
import { t } from "../../text";

export default function Settings() {
  return <Page title={t("shell.settings")}>{null}</Page>;
}
