/** Making another release the active one, with the way back. */

import { callTool } from "../../api/client";
import { useAct } from "../../api/use";
import { t } from "../../text";
import { useToast } from "../../ui/dialog";
import type { Publication } from "./tools";

/** @param done is told whenever another release has become active. */
export function useActivate(done: () => void) {
  const toast = useToast();
  const rollback = useAct(async (to: number, from: number) => {
    const now = await callTool<Publication>("rollback_instructions", { to });
    toast(t("instructions.active_now", { release: now.release }), () => void rollback.run(from, to));
    done();
    return now;
  });
  /** Says that a release was published over `before`, which can be made active again. */
  const published = (now: Publication, before: number) => {
    toast(t("instructions.published", { release: now.release }), () => void rollback.run(before, now.number));
    done();
  };
  return { rollback, published };
}
