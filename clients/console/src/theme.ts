/** Light or dark, as the system says or the viewer chose. */

export type Theme = "system" | "light" | "dark";

const CHOSEN = "phronesis.theme";

export function theme(): Theme {
  const chosen = localStorage.getItem(CHOSEN);
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

export function showTheme(): void {
  document.documentElement.dataset["theme"] = theme();
}

export function chooseTheme(chosen: Theme): void {
  if (chosen === "system") localStorage.removeItem(CHOSEN);
  else localStorage.setItem(CHOSEN, chosen);
  showTheme();
}
