/** What differs between two releases, text by text. */

import { t, word } from "../../text";
import { Diff } from "../../ui/diff";
import { Badge } from "../../ui/layout";
import { textHref } from "./texts";
import type { TextChange } from "./tools";

const TONES = { added: "good", changed: "info", removed: "bad" } as const;

export function Changes(props: { of: TextChange[]; before: string; after: string }) {
  if (!props.of.length) return <p class="note">{t("instructions.no_changes")}</p>;
  return (
    <div class="stack">
      {props.of.map((change) => (
        <section key={change.tag} class="stack tight" aria-label={change.tag}>
          <div class="row">
            <h3>
              <a class="mono" href={textHref(change.tag)}>
                {change.tag}
              </a>
            </h3>
            <Badge tone={TONES[change.change]}>{word("instructions", `change_${change.change}`)}</Badge>
            <span class="note">{[change.before, change.after].filter(Boolean).join(" → ")}</span>
          </div>
          {change.diff && <Diff label={t("instructions.difference", { tag: change.tag })} patch={change.diff} before={props.before} after={props.after} />}
        </section>
      ))}
    </div>
  );
}
