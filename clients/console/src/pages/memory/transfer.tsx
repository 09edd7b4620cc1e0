/** Taking memories along as JSON lines, and taking them in. */

import { Download, Upload } from "lucide-preact";
import { useState } from "preact/hooks";

import { api, data, once, Problem, type Schemas } from "../../api/client";
import { useAct } from "../../api/use";
import { number } from "../../format";
import { useMe } from "../../session";
import { t } from "../../text";
import { Button, Field } from "../../ui/controls";
import { Card, ProblemNote } from "../../ui/layout";
import { mayWrite } from "./parts";

/** Memories that are sent at once. */
const BATCH = 100;
const PAGE = 200;

type New = Schemas["NewMemory"];
interface Refused {
  line: number;
  why: string;
}

export function Transfer() {
  const me = useMe();
  return (
    <>
      <Export />
      {mayWrite(me) ? (
        <Import />
      ) : (
        <Card title={t("memory.import")}>
          <p class="note">{t("memory.only_read")}</p>
        </Card>
      )}
    </>
  );
}

function Export() {
  const [done, setDone] = useState<number>();
  const act = useAct(async () => {
    const parts: string[] = [];
    let cursor: string | null | undefined;
    let count = 0;
    do {
      const page = await data(api.GET("/api/v1/memory", { params: { query: { limit: PAGE, ...(cursor && { cursor }) } } }));
      parts.push(...page.memories.map((memory) => `${JSON.stringify(memory)}\n`));
      cursor = page.next;
      setDone((count += page.memories.length));
    } while (cursor);
    save(new Blob(parts, { type: "application/jsonl" }), `memories-${new Date().toISOString().slice(0, 10)}.jsonl`);
  });
  return (
    <Card title={t("memory.export")}>
      <p class="note">{t("memory.export_hint")}</p>
      <div class="memory-acts">
        <Button icon={<Download aria-hidden="true" />} busy={act.running} onClick={() => void act.run()}>
          {t("memory.export_act")}
        </Button>
        <span role="status">{done !== undefined && t(act.running ? "memory.exporting" : "memory.exported", { count: done })}</span>
      </div>
      {act.problem && <ProblemNote problem={act.problem} />}
    </Card>
  );
}

function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** The memory of a line, and the conversation that it belongs to. */
function readLine(text: string): { memory: New; conversation: string } {
  const given: unknown = JSON.parse(text);
  if (typeof given !== "object" || given === null || !("text" in given)) throw new Error(t("memory.no_text"));
  const found = given as Schemas["Memory"] & New;
  if (typeof found.text !== "string" || !found.text.trim()) throw new Error(t("memory.no_text"));
  if (found.kind && !["note", "message"].includes(found.kind)) throw new Error(t("memory.not_importable", { kind: found.kind }));
  const memory = {
    text: found.text,
    ...(found.metadata && { metadata: found.metadata }),
    ...(found.speaker && { speaker: found.speaker }),
    ...(found.external_id && { external_id: found.external_id }),
    ...(found.occurred_at && { occurred_at: found.occurred_at }),
    ...(found.expires_at && { expires_at: found.expires_at }),
  };
  return { memory, conversation: found.conversation_id ?? "" };
}

interface Read {
  line: number;
  memory: New;
}

/** Adds some, and where they are refused together finds those that are to blame by adding halves. */
async function addAll(reads: Read[], conversation: string, refuse: (refused: Refused) => void): Promise<Schemas["AddedMemory"][]> {
  const body = { memories: reads.map((each) => each.memory), wait: false, ...(conversation && { conversation_id: conversation }) };
  try {
    return (await data(api.POST("/api/v1/memory", { body, params: { header: once() } }))).memories;
  } catch (error) {
    if (!(error instanceof Problem) || (error.status !== 400 && error.status !== 413)) throw error;
    const [first] = reads;
    if (reads.length === 1 && first) {
      refuse({ line: first.line, why: error.message });
      return [];
    }
    const half = Math.ceil(reads.length / 2);
    const added = await addAll(reads.slice(0, half), conversation, refuse);
    return [...added, ...(await addAll(reads.slice(half), conversation, refuse))];
  }
}

interface Report {
  total: number;
  seen: number;
  counts: Record<string, number>;
  refused: Refused[];
}

function Import() {
  const [file, setFile] = useState<File>();
  const [report, setReport] = useState<Report>();
  const act = useAct(async (chosen: File) => {
    const lines = (await chosen.text()).split("\n").map((text, index) => ({ text, line: index + 1 }));
    const full = lines.filter((each) => each.text.trim());
    const now: Report = { total: full.length, seen: 0, counts: {}, refused: [] };
    const show = () => setReport({ ...now, refused: [...now.refused] });
    const refuse = (refused: Refused) => now.refused.push(refused);
    const groups = new Map<string, Read[]>();
    for (const { text, line } of full) {
      try {
        const { memory, conversation } = readLine(text);
        groups.set(conversation, [...(groups.get(conversation) ?? []), { line, memory }]);
      } catch (error) {
        refuse({ line, why: error instanceof SyntaxError ? t("memory.no_json") : (error as Error).message });
        now.seen += 1;
      }
    }
    show();
    for (const [conversation, reads] of groups) {
      for (let start = 0; start < reads.length; start += BATCH) {
        const batch = reads.slice(start, start + BATCH);
        for (const { status } of await addAll(batch, conversation, refuse)) now.counts[status] = (now.counts[status] ?? 0) + 1;
        now.seen += batch.length;
        show();
      }
    }
    now.refused.sort((one, other) => one.line - other.line);
    show();
  });
  return (
    <Card title={t("memory.import")}>
      <p class="note">{t("memory.import_hint")}</p>
      <Field label={t("memory.import_file")}>
        {(wired) => (
          <input
            {...wired}
            class="input"
            type="file"
            accept=".jsonl,.ndjson,.json,application/jsonl,text/plain"
            disabled={act.running}
            onChange={(event) => setFile(event.currentTarget.files?.[0])}
          />
        )}
      </Field>
      <div class="memory-acts">
        <Button
          kind="primary"
          icon={<Upload aria-hidden="true" />}
          busy={act.running}
          disabled={!file}
          onClick={() => file && void act.run(file)}
        >
          {t("memory.import_act")}
        </Button>
      </div>
      {act.problem && <ProblemNote problem={act.problem} />}
      {report && (
        <div class="memory-report" role="status">
          <progress value={report.seen} max={report.total} aria-label={t("memory.import")} />
          <p>
            {t("memory.import_report", {
              seen: report.seen,
              total: report.total,
              created: report.counts.created ?? 0,
              updated: report.counts.updated ?? 0,
              unchanged: report.counts.unchanged ?? 0,
              refused: report.refused.length,
            })}
          </p>
        </div>
      )}
      {!!report?.refused.length && (
        <details class="memory-refused" open>
          <summary>{t("memory.refused", { count: report.refused.length })}</summary>
          <ul>
            {report.refused.slice(0, 200).map((each) => (
              <li key={each.line}>
                <strong>{t("memory.line", { line: number(each.line) })}</strong> {each.why}
              </li>
            ))}
          </ul>
        </details>
      )}
    </Card>
  );
}
