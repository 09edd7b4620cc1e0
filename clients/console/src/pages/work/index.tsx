import { Page } from "../../ui/layout";
import { t } from "../../text";

export default function Work() {
  return <Page title={t("shell.work")}>{null}</Page>;
}
