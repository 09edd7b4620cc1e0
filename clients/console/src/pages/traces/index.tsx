import { Page } from "../../ui/layout";
import { t } from "../../text";

export default function Traces() {
  return <Page title={t("shell.traces")}>{null}</Page>;
}
