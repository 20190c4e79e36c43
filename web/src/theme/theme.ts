/** Dark or light: the reader's choice, otherwise the system's. */
import { useLayoutEffect, useState, useSyncExternalStore } from "react";

export type Theme = "light" | "dark";

const systemDark = matchMedia("(prefers-color-scheme: dark)");

export function useTheme(): [Theme, () => void] {
  const system = useSyncExternalStore(subscribe, () => (systemDark.matches ? "dark" : "light"));
  const [chosen, choose] = useState<Theme | null>(
    () => readSetting("theme", ["light", "dark"]) as Theme | null,
  );
  const theme = chosen ?? system;
  // Must run before the charts read their colours from the page's style.
  useLayoutEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  return [
    theme,
    () => {
      const next = theme === "dark" ? "light" : "dark";
      choose(next);
      writeSetting("theme", next);
    },
  ];
}

function subscribe(changed: () => void): () => void {
  systemDark.addEventListener("change", changed);
  return () => systemDark.removeEventListener("change", changed);
}

/** A setting stored across pages; null if it is not set or the browser stores none for files. */
export function readSetting(name: string, allowed?: readonly string[]): string | null {
  try {
    const value = localStorage.getItem(`tidemark.${name}`);
    return value !== null && (allowed === undefined || allowed.includes(value)) ? value : null;
  } catch {
    return null;
  }
}

export function writeSetting(name: string, value: string): void {
  try {
    localStorage.setItem(`tidemark.${name}`, value);
  } catch {
    // The choice then lasts only for this page.
  }
}
