/** Which texts there are: by mode and tier for analysts, by agent and purpose for all. */

import { callTool } from "../../api/client";
import { useRead } from "../../api/use";
import { number } from "../../format";
import { t, word } from "../../text";
import { Card, Loaded } from "../../ui/layout";
import { textHref } from "./texts";
import type { InstructionList, TextInfo } from "./tools";

const MODES = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"];

function Cell(props: { of: TextInfo | undefined }) {
  const { of } = props;
  if (!of) {
    return (
      <td class="lacking">
        <span aria-hidden="true">–</span>
        <span class="unseen">{t("instructions.lacking")}</span>
      </td>
    );
  }
  const state = of.status === "active" ? (of.own ? "own" : "there") : "off";
  return (
    <td class={state}>
      <a href={textHref(of.tag)} title={of.tag}>
        {number(of.tokens)}
        <span class="unseen"> {`${of.tag}, ${state === "off" ? word("instructions", `status_${of.status}`) : state === "own" ? t("instructions.own") : ""}`}</span>
      </a>
    </td>
  );
}

function Matrix(props: { title: string; hint: string; corner: string; columns: string[]; rows: { name: string; cells: (TextInfo | undefined)[] }[] }) {
  return (
    <Card title={props.title}>
      <p class="note">{props.hint}</p>
      <div class="matrix-box" tabIndex={0} role="region" aria-label={props.title}>
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">{props.corner}</th>
              {props.columns.map((each) => (
                <th key={each} scope="col">
                  {each}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {props.rows.map((row) => (
              <tr key={row.name}>
                <th scope="row">{row.name}</th>
                {row.cells.map((cell, place) => (
                  <Cell key={place} of={cell} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function Matrices(props: { texts: TextInfo[] }) {
  const known = new Map(props.texts.map((text) => [text.tag, text]));
  const modes = MODES.map((mode) => {
    const bundle = `tier2_mode_${mode.toLowerCase()}`;
    return { name: mode, cells: [known.get("tier1_bootstrap"), known.get(bundle), known.get(`${bundle}/preface`)] };
  });
  const ofAgents = props.texts.filter((text) => text.tag.includes("/") && !text.tag.startsWith("tier2_"));
  const agents = [...new Set(ofAgents.map((text) => text.tag.split("/")[0] ?? ""))].sort();
  const purposes = [...new Set(ofAgents.map((text) => text.tag.split("/").slice(1).join("/")))].sort();
  const elements = [2, 3].map((tier) => props.texts.filter((text) => text.tier === tier && text.status === "active").length);
  return (
    <>
      <Matrix
        title={t("instructions.by_mode")}
        hint={t("instructions.by_mode_hint", { second: elements[0] ?? 0, third: elements[1] ?? 0 })}
        corner={t("instructions.mode")}
        columns={[t("instructions.tier_number", { number: 1 }), t("instructions.tier_number", { number: 2 }), t("instructions.preface")]}
        rows={modes}
      />
      <Matrix
        title={t("instructions.by_agent")}
        hint={t("instructions.by_agent_hint")}
        corner={t("instructions.purpose")}
        columns={agents}
        rows={purposes.map((purpose) => ({ name: purpose, cells: agents.map((agent) => known.get(`${agent}/${purpose}`)) }))}
      />
    </>
  );
}

export function Coverage() {
  const list = useRead((signal) => callTool<InstructionList>("list_instructions", {}, signal), []);
  return <Loaded of={list}>{({ texts }) => <Matrices texts={texts} />}</Loaded>;
}
