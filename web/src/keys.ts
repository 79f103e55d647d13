/** Keys: / searches, g and a letter goes to a page, j and k walk through rows, Enter opens one, t changes the zone. */
import { toggleZone } from "./format";
import { go } from "./router";

export function startKeys(pages: Record<string, string>, help: () => void): void {
  let going = 0;
  addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (target.closest("input, textarea, select")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (Date.now() - going < 1500 && pages[event.key]) {
      going = 0;
      go(pages[event.key]!);
      event.preventDefault();
      return;
    }
    going = 0;
    if (event.key === "g") going = Date.now();
    else if (event.key === "t") toggleZone();
    else if (event.key === "?") help();
    else if (event.key === "j" || event.key === "k") walk(event.key === "j" ? 1 : -1);
    else if (event.key === "/") {
      const search = document.querySelector<HTMLInputElement>("[data-search]");
      search?.focus();
      search?.select();
    } else if (event.key === "Enter" && target.matches("tr[data-row]")) go(target.dataset.row!);
    else return;
    if (event.key !== "t") event.preventDefault();
  });
}

function walk(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("tr[data-row]")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
  if (!next) return;
  next.tabIndex = -1;
  next.focus();
}
