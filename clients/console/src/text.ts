/** The words of the console, in the language of the viewer: one catalogue of messages, `messages/LANGUAGE/AREA.json`. */

import IntlMessageFormat from "intl-messageformat";

import type chat from "../messages/en/chat.json";
import type constitution from "../messages/en/constitution.json";
import type graph from "../messages/en/graph.json";
import type home from "../messages/en/home.json";
import type instructions from "../messages/en/instructions.json";
import type memory from "../messages/en/memory.json";
import type settings from "../messages/en/settings.json";
import type shell from "../messages/en/shell.json";
import type traces from "../messages/en/traces.json";
import type work from "../messages/en/work.json";

type Catalogue = typeof chat &
  typeof constitution &
  typeof graph &
  typeof home &
  typeof instructions &
  typeof memory &
  typeof settings &
  typeof shell &
  typeof traces &
  typeof work;
export type Key = keyof Catalogue;
export type Values = Record<string, string | number | Date | boolean>;

const CHOSEN = "phronesis.language";
let texts: Record<string, string> = {};
let current = "en";
const parsed = new Map<string, IntlMessageFormat>();

/** Where the messages of each language are, as the page states it. */
export function languages(): Record<string, string> {
  return JSON.parse(document.querySelector<HTMLMetaElement>('meta[name="languages"]')?.content ?? "{}") as Record<string, string>;
}

/** The language of the messages that are shown, as a tag such as `en`. */
export function language(): string {
  return current;
}

/** Loads the messages of the language that the viewer chose, or of the first of the browser's that there is. */
export async function loadTexts(): Promise<void> {
  const known = languages();
  const wanted = [localStorage.getItem(CHOSEN), ...navigator.languages.map((tag) => tag.split("-")[0])];
  current = wanted.find((tag): tag is string => !!tag && tag in known) ?? "en";
  texts = (await (await fetch(known[current] ?? "")).json()) as Record<string, string>;
  document.documentElement.lang = current;
}

/** Keeps the viewer's choice and shows the page anew in it. */
export function chooseLanguage(tag: string): void {
  localStorage.setItem(CHOSEN, tag);
  location.reload();
}

/** A message with its values put in; plurals and numbers follow the language. */
export function t(key: Key, values?: Values): string {
  const text = texts[key] ?? key;
  if (!values && !text.includes("{")) return text;
  let format = parsed.get(key);
  if (!format) parsed.set(key, (format = new IntlMessageFormat(text, current, undefined, { ignoreTag: true })));
  return String(format.format(values));
}
/** The word for a value of a closed set, such as a status, or the value itself where the catalogue has none. */
export function word(area: string, value: string): string {
  return texts[`${area}.${value}`] ?? value.replaceAll("_", " ");
}
