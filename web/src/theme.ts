/** Dark or light: as the system says, or as somebody has chosen. */
import { signal } from "@preact/signals";

const dark = matchMedia("(prefers-color-scheme: dark)");
const chosen = signal(localStorage.getItem("theme"));

export const theme = signal<"dark" | "light">("light");

function apply(): void {
  document.documentElement.style.colorScheme = chosen.value ?? "light dark";
  theme.value = (chosen.value ?? (dark.matches ? "dark" : "light")) as "dark" | "light";
}

export function startTheme(): void {
  dark.addEventListener("change", apply);
  apply();
}

export function toggleTheme(): void {
  const wanted = theme.value === "dark" ? "light" : "dark";
  const system = dark.matches ? "dark" : "light";
  chosen.value = wanted === system ? null : wanted;
  if (chosen.value) localStorage.setItem("theme", chosen.value);
  else localStorage.removeItem("theme");
  apply();
}
