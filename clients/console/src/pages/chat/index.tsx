import { Page } from "../../ui/layout";
import { t } from "../../text";

export default function Chat() {
  return <Page title={t("shell.chat")}>{null}</Page>;
}
