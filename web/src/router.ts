/** The address is the state: a path says which page, the query string everything that can be chosen on it. */
import { signal } from "@preact/signals";

export type Params = Record<string, string | undefined>;

export const place = signal(read());

function read() {
  return { path: location.pathname.replace(/\/+$/, "") || "/overview", params: new URLSearchParams(location.search) };
}

export function href(path: string, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value) query.set(name, value);
  const text = query.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
  return text ? `${path}?${text}` : path;
}

export function go(address: string, replace = false): void {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  place.value = read();
}

export function param(name: string): string {
  return place.value.params.get(name) ?? "";
}

/** The address of this page with some of its choices changed. */
export function here(changes: Params): string {
  return href(place.value.path, { ...Object.fromEntries(place.value.params), ...changes });
}

export function choose(changes: Params, replace = true): void {
  go(here(changes), replace);
}

export function startRouter(): void {
  addEventListener("popstate", () => (place.value = read()));
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.("a");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
    if (link.pathname.startsWith("/v1/") || link.hash) return;
    event.preventDefault();
    go(link.pathname + link.search);
    if (!link.closest("table, svg")) scrollTo(0, 0);
  });
}
