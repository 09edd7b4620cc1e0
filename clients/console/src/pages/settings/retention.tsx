/** For how many days the tenant keeps what. */

import { useState } from "preact/hooks";

import { api, data, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { t, word } from "../../text";
import { Button, TextField } from "../../ui/controls";
import { Confirm, useToast } from "../../ui/dialog";
import { Card, Loaded } from "../../ui/layout";

const WHAT = ["conversations", "traces", "episodes", "messages", "media"] as const;
type Days = Schemas["Retention"];

export function Retention() {
  const kept = useRead((signal) => data(api.GET("/api/v1/retention", { signal })), []);
  return <Loaded of={kept}>{(days) => <Form key={JSON.stringify(days)} days={days} onDone={kept.set} />}</Loaded>;
}

function Form(props: { days: Days; onDone: (days: Days) => void }) {
  const toast = useToast();
  const [texts, setTexts] = useState(Object.fromEntries(WHAT.map((what) => [what, String(props.days[what] ?? "")])));
  const [asking, setAsking] = useState(false);
  const wanted = Object.fromEntries(WHAT.filter((what) => texts[what]).map((what) => [what, Number(texts[what])])) as Days;
  const shorter = WHAT.filter((what) => (wanted[what] ?? Infinity) < (props.days[what] ?? Infinity));
  const same = WHAT.every((what) => (wanted[what] ?? null) === (props.days[what] ?? null));
  const act = useAct(async () => {
    const done = await data(api.PUT("/api/v1/retention", { body: wanted }));
    setAsking(false);
    toast(t("settings.saved"));
    props.onDone(done);
  });
  return (
    <Card title={t("settings.retention")}>
      <p class="note">{t("settings.retention_hint")}</p>
      <form
        class="settings-form"
        onSubmit={(event) => {
          event.preventDefault();
          setAsking(true);
        }}
      >
        <div class="settings-two">
          {WHAT.map((what) => (
            <TextField
              key={what}
              label={word("settings", `keep_${what}`)}
              hint={word("settings", `keep_${what}_hint`)}
              type="number"
              min={1}
              max={36500}
              placeholder={t("settings.for_ever")}
              value={texts[what] ?? ""}
              onInput={(event) => setTexts({ ...texts, [what]: event.currentTarget.value })}
            />
          ))}
        </div>
        <div>
          <Button kind="primary" type="submit" disabled={same}>
            {t("shell.save")}
          </Button>
        </div>
      </form>
      {asking && (
        <Confirm title={t("settings.retention_change")} act={t("shell.save")} busy={act.running} problem={act.problem} onConfirm={() => void act.run()} onClose={() => setAsking(false)}>
          {shorter.length ? (
            <>
              <p>{t("settings.retention_deletes")}</p>
              <ul>
                {shorter.map((what) => (
                  <li key={what}>{t("settings.retention_older", { what: word("settings", `keep_${what}`), days: wanted[what] ?? 0 })}</li>
                ))}
              </ul>
            </>
          ) : (
            <p>{t("settings.retention_longer")}</p>
          )}
        </Confirm>
      )}
    </Card>
  );
}
