import { Page } from "../../ui/layout";
import { t } from "../../text";

export default function Home() {
  return <Page title={t("shell.home")}>{null}</Page>;
}
