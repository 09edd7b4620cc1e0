/** What agents know of the viewer, as the viewer may change it. */

import { Pencil, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";

import { api, data, once, Problem, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { t } from "../../text";
import { Button, TextArea } from "../../ui/controls";
import { Confirm, Dialog, useToast } from "../../ui/dialog";
import { Card, Empty, Facts, Loaded, ProblemNote } from "../../ui/layout";
import { When } from "./parts";

type Held = Schemas["Profile"];
type Members = Record<string, unknown>;

function ifSame(version: number | null | undefined) {
  return { ...once(), "If-Match": `"${version ?? 0}"` };
}

export function Profile() {
  const toast = useToast();
  const [open, setOpen] = useState<"edit" | "delete">();
  const profile = useRead((signal) => data(api.GET("/api/v1/profile", { signal })), []);
  const put = async (members: Members, version: number | null | undefined) => {
    const done = await data(api.PUT("/api/v1/profile", { body: { profile: members as Record<string, never> }, params: { header: ifSame(version) } }));
    profile.set(done);
    return done;
  };
  const remove = useAct(async (held: Held) => {
    const done = await data(api.DELETE("/api/v1/profile", { params: { header: ifSame(held.version) } }));
    profile.set(done);
    setOpen(undefined);
    toast(t("settings.profile_deleted"), () => void put(held.profile ?? {}, done.version));
  });
  const held = profile.data;
  const members = Object.entries((held?.profile ?? {}) as Members);
  return (
    <Card
      title={t("settings.profile")}
      actions={
        held && (
          <>
            <Button icon={<Pencil aria-hidden="true" />} onClick={() => setOpen("edit")}>
              {t("shell.edit")}
            </Button>
            {members.length > 0 && (
              <Button kind="danger" icon={<Trash2 aria-hidden="true" />} onClick={() => setOpen("delete")}>
                {t("shell.delete")}
              </Button>
            )}
          </>
        )
      }
    >
      <Loaded of={profile}>
        {(found) =>
          members.length ? (
            <>
              <Facts of={members.map(([name, value]) => [name, typeof value === "string" ? value : <code class="settings-json">{JSON.stringify(value, null, 1)}</code>])} />
              {found.updated_at && (
                <p class="note">
                  {t("settings.changed")} <When at={found.updated_at} />
                </p>
              )}
            </>
          ) : (
            <Empty title={t("settings.profile_empty")}>
              <p>{t("settings.profile_empty_hint")}</p>
            </Empty>
          )
        }
      </Loaded>
      {held && open === "edit" && <Edit held={held} put={put} onClose={() => setOpen(undefined)} />}
      {held && open === "delete" && (
        <Confirm title={t("settings.profile_delete")} act={t("shell.delete")} busy={remove.running} problem={remove.problem} onConfirm={() => void remove.run(held)} onClose={() => setOpen(undefined)}>
          <p>{t("settings.profile_delete_text")}</p>
        </Confirm>
      )}
    </Card>
  );
}

function Edit(props: { held: Held; put: (members: Members, version: number | null | undefined) => Promise<Held>; onClose: () => void }) {
  const toast = useToast();
  const before = (props.held.profile ?? {}) as Members;
  const [text, setText] = useState(JSON.stringify(before, null, 2));
  const act = useAct(async () => {
    const done = await props.put(readObject(text), props.held.version);
    props.onClose();
    toast(t("settings.saved"), () => void props.put(before, done.version));
  });
  return (
    <Dialog
      title={t("settings.profile_edit")}
      onClose={props.onClose}
      actions={
        <>
          <Button onClick={props.onClose}>{t("shell.cancel")}</Button>
          <Button kind="primary" busy={act.running} onClick={() => void act.run()}>
            {t("shell.save")}
          </Button>
        </>
      }
    >
      <TextArea class="input settings-code" label={t("settings.profile_json")} hint={t("settings.profile_json_hint")} rows={14} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      {act.problem && <ProblemNote problem={act.problem} />}
    </Dialog>
  );
}

function readObject(text: string): Members {
  try {
    const found: unknown = JSON.parse(text);
    if (typeof found === "object" && found && !Array.isArray(found)) return found as Members;
  } catch {
    // what is wrong is told below
  }
  throw new Problem(400, "bad_request", t("settings.no_object"), "profile");
}
