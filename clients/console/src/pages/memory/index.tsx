import { Page } from "../../ui/layout";
import { t } from "../../text";

export default function Memory() {
  return <Page title={t("shell.memory")}>{null}</Page>;
}
