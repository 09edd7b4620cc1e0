/** Makes an agent of the tenant's own, or a new version of one: described, looked at, then published. */

import { useState } from "preact/hooks";

import { api, data, once, type Schemas } from "../../api/client";
import { useAct } from "../../api/use";
import { t, word } from "../../text";
import { Button, Select, TextArea, TextField } from "../../ui/controls";
import { Dialog, useToast } from "../../ui/dialog";
import { Diff } from "../../ui/diff";
import { ProblemNote } from "../../ui/layout";

type Definition = Partial<Schemas["AgentDefinition"]>;
type Source = Schemas["AnswerSource"];

const SOURCES: Source[] = ["documents", "memory", "twin", "constitution"];

/**
 * @param of the agent to change; a new one without it.
 * @param packaged names of the agents that it can be based on.
 */
export function AgentForm(props: { of?: Definition; packaged: string[]; onClose: () => void; onDone: (name: string) => void }) {
  const before = props.of ?? {};
  const toast = useToast();
  const [name, setName] = useState(before.name ?? "");
  const [description, setDescription] = useState(before.description ?? "");
  const [base, setBase] = useState(before.based_on ?? "");
  const [instructions, setInstructions] = useState(before.instructions ?? "");
  const [tools, setTools] = useState((before.tools ?? []).join("\n"));
  const [sources, setSources] = useState<Source[]>(before.sources ?? []);
  const [model, setModel] = useState(before.model ?? "");
  const [note, setNote] = useState("");
  const [planned, setPlanned] = useState<Schemas["AgentPublished"]>();
  const publish = (dryRun: boolean) => {
    const named = tools.split(/\s+/).filter(Boolean);
    // What the form does not show, such as phrases and limits, stays as it is.
    const body = {
      ...before,
      description: description.trim(),
      instructions: instructions.trim(),
      based_on: base || null,
      tools: named.length ? named : null,
      sources: sources.length ? sources : null,
      model: model.trim() || null,
      note: note.trim(),
      dry_run: dryRun,
      name,
    } as Schemas["NamedAgentGiven"];
    return data(api.PUT("/api/v1/agents/{name}", { params: { path: { name }, header: once() }, body }));
  };
  const look = useAct(async () => setPlanned(await publish(true)));
  const act = useAct(async () => {
    const { version } = await publish(false);
    toast(t("settings.agent_published", { name, version }));
    props.onDone(name);
    props.onClose();
  });
  const problem = look.problem ?? act.problem;
  return (
    <Dialog
      side
      title={props.of ? t("settings.agent_change", { name }) : t("settings.agent_make")}
      onClose={props.onClose}
      actions={
        planned ? (
          <>
            <Button onClick={() => setPlanned(undefined)}>{t("shell.edit")}</Button>
            <Button kind="primary" busy={act.running} disabled={!planned.changed?.length} onClick={() => void act.run()}>
              {t("settings.agent_publish", { version: planned.version })}
            </Button>
          </>
        ) : (
          <>
            <Button onClick={props.onClose}>{t("shell.cancel")}</Button>
            <Button kind="primary" busy={look.running} disabled={!name} onClick={() => void look.run()}>
              {t("settings.agent_look")}
            </Button>
          </>
        )
      }
    >
      {problem && <ProblemNote problem={problem} />}
      {planned ? (
        planned.diff ? (
          <Diff label={t("settings.diff")} patch={planned.diff} />
        ) : (
          <p class="note">{t("settings.no_difference")}</p>
        )
      ) : (
        <div class="settings-form">
          {!props.of && (
            <TextField label={t("settings.agent_name")} hint={t("settings.agent_name_hint")} required maxLength={40} pattern="[a-z][a-z0-9]*(-[a-z0-9]+)*" value={name} onInput={(event) => setName(event.currentTarget.value.trim())} />
          )}
          <TextField label={t("settings.purpose")} hint={t("settings.agent_purpose_hint")} maxLength={300} value={description} onInput={(event) => setDescription(event.currentTarget.value)} />
          <Select
            label={t("settings.based_on")}
            value={base}
            options={[{ value: "", label: t("settings.agent_base_default") }, ...props.packaged.map((value) => ({ value, label: value }))]}
            onChange={(event) => setBase(event.currentTarget.value)}
          />
          <TextArea label={t("settings.agent_instructions")} hint={t("settings.agent_instructions_hint")} rows={8} maxLength={8000} value={instructions} onInput={(event) => setInstructions(event.currentTarget.value)} />
          <fieldset class="settings-choices">
            <legend>{t("settings.agent_sources")}</legend>
            {SOURCES.map((each) => (
              <label key={each}>
                <input
                  type="checkbox"
                  checked={sources.includes(each)}
                  onChange={(event) => setSources(event.currentTarget.checked ? [...sources, each] : sources.filter((other) => other !== each))}
                />
                {word("settings", `source_${each}`)}
              </label>
            ))}
            <p class="field-hint">{t("settings.agent_sources_hint")}</p>
          </fieldset>
          <TextArea label={t("settings.tools_of")} hint={t("settings.agent_tools_hint")} rows={3} value={tools} onInput={(event) => setTools(event.currentTarget.value)} />
          <TextField label={t("settings.model")} hint={t("settings.agent_model_hint")} maxLength={200} value={model} onInput={(event) => setModel(event.currentTarget.value)} />
          <TextField label={t("settings.note")} hint={t("settings.agent_note_hint")} maxLength={500} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
        </div>
      )}
    </Dialog>
  );
}
