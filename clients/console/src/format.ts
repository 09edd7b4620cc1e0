/** Numbers, money, lengths of time and moments, in the viewer's language and zone. */

import { language } from "./text";

/** A number, with at most so many digits behind the point. */
export function number(value: number, digits = 0): string {
  return new Intl.NumberFormat(language(), { maximumFractionDigits: digits }).format(value);
}

/** A large number in few signs, such as `1.2K`. */
export function short(value: number): string {
  return new Intl.NumberFormat(language(), { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

/** A share between 0 and 1 as a percentage. */
export function percent(share: number, digits = 0): string {
  return new Intl.NumberFormat(language(), { style: "percent", maximumFractionDigits: digits }).format(share);
}

/** US dollars; small sums keep their first digits that count. */
export function dollars(value: number): string {
  const digits = value !== 0 && Math.abs(value) < 0.1 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 2 };
  return new Intl.NumberFormat(language(), { style: "currency", currency: "USD", ...digits }).format(value);
}

/** A length of time in seconds, such as `850 ms`, `2.4 s` or `3 min 5 s`. */
export function duration(seconds: number): string {
  if (seconds < 1) return `${number(seconds * 1000)} ms`;
  if (seconds < 60) return `${number(seconds, 1)} s`;
  const minutes = Math.floor(seconds / 60);
  const rest = Math.round(seconds % 60);
  return minutes < 60 ? `${minutes} min${rest ? ` ${rest} s` : ""}` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Bytes, such as `1.2 MB`. */
export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, count)) / 3));
  return `${number(count / 1000 ** step, step ? 1 : 0)} ${units[step]}`;
}

/** A moment as date and time in the viewer's zone. */
export function moment(iso: string): string {
  return new Intl.DateTimeFormat(language(), { dateStyle: "medium", timeStyle: "short" }).format(new Date(iso));
}

/** A day. */
export function day(iso: string): string {
  return new Intl.DateTimeFormat(language(), { dateStyle: "medium" }).format(new Date(iso));
}

/** The first moment of a local day, or of the day behind it. */
export function startOfDay(day: string, behind = 0): string {
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  return new Date(year, month - 1, date + behind).toISOString();
}

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** How long ago or ahead a moment is, such as `5 minutes ago`. */
export function ago(iso: string, now = Date.now()): string {
  const seconds = (new Date(iso).getTime() - now) / 1000;
  const format = new Intl.RelativeTimeFormat(language(), { numeric: "auto" });
  for (const [unit, length] of STEPS) if (Math.abs(seconds) >= length) return format.format(Math.round(seconds / length), unit);
  return format.format(Math.round(seconds), "second");
}
