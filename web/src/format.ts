/** How numbers, money, spans and moments are written; unknown is a dash. */
import { signal } from "@preact/signals";

export const DASH = "–";
export const zone = signal<"UTC" | "local">((localStorage.getItem("zone") as "UTC" | "local") ?? "local");

export function toggleZone(): void {
  zone.value = zone.value === "UTC" ? "local" : "UTC";
  localStorage.setItem("zone", zone.value);
}

type Maybe = number | null | undefined;

export function count(value: Maybe, digits = 0): string {
  return value == null ? DASH : value.toLocaleString("en", { maximumFractionDigits: digits });
}

export function rate(value: Maybe): string {
  if (value == null) return DASH;
  return value >= 100 || value === 0 ? count(value) : count(value, value >= 1 ? 1 : 2);
}

export function short(value: Maybe): string {
  if (value == null) return DASH;
  for (const [unit, size] of [["M", 1e6], ["k", 1e3]] as const)
    if (value >= 10 * size || (value >= size && unit === "M")) return `${count(value / size, value < 10 * size ? 1 : 0)}${unit}`;
  return rate(value);
}

export function span(seconds: Maybe): string {
  if (seconds == null) return DASH;
  if (seconds < 0.0995) return `${count(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${count(seconds)} s`;
  if (seconds < 7200) return `${count(seconds / 60)} min`;
  return seconds < 172800 ? `${count(seconds / 3600)} h` : `${count(seconds / 86400)} d`;
}

export function share(value: Maybe, digits = 0): string {
  return value == null ? DASH : `${(100 * value).toFixed(digits)}%`;
}

const SIGNS: Record<string, string> = { USD: "$", EUR: "€", GBP: "£" };

export function money(value: Maybe | string, currency: string, digits = 4): string {
  if (value == null) return DASH;
  const sign = SIGNS[currency] ?? `${currency} `;
  const amount = Number(value);
  const text = `${sign}${Math.abs(amount).toFixed(digits)}`;
  return amount < 0 && Number(amount.toFixed(digits)) < 0 ? `−${text}` : text;
}

/** A moment in seconds since 1970, or as ISO text; the zone is always there. */
export function moment(value: Maybe | string, withDate = false): string {
  if (value == null) return DASH;
  const date = typeof value === "number" ? new Date(value * 1000) : new Date(value);
  return date.toLocaleString("en-GB", {
    ...(withDate ? { year: "numeric", month: "short", day: "numeric" } : {}),
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZoneName: "short",
    ...(zone.value === "UTC" ? { timeZone: "UTC" } : {}),
  });
}

export function ago(seconds: number): string {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  return past < 8 ? "now" : `${span(past)} ago`;
}

export function plural(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}
