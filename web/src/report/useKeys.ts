/** The page's keyboard shortcuts; Help.tsx lists them. */
import { type Dispatch, type RefObject, type SetStateAction, useEffect } from "react";
import type { Choose, Tab } from "../choices/choices.js";

interface Keys {
  tabs: readonly Tab[];
  choose: Choose;
  helping: boolean;
  setHelping: Dispatch<SetStateAction<boolean>>;
  toggleTheme(): void;
  searchField: RefObject<HTMLInputElement | null>;
  /** Reverses the flame graph: callers below or callees below. */
  turn(): void;
}

export function useKeys(keys: Keys): void {
  const { tabs, choose, helping, setHelping, toggleTheme, searchField, turn } = keys;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const typing =
        event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.ctrlKey || event.metaKey || event.altKey) {
        return;
      }
      if (event.key === "Escape" && helping) {
        setHelping(false);
      } else if (typing) {
        return;
      } else if (event.key === "/") {
        event.preventDefault();
        searchField.current?.focus();
        searchField.current?.select();
      } else if (event.key === "?") {
        setHelping((now) => !now);
      } else if (event.key === "t") {
        toggleTheme();
      } else if (event.key === "r") {
        turn();
      } else {
        const tab = /^[1-9]$/.test(event.key) ? tabs[Number(event.key) - 1] : undefined;
        if (tab !== undefined) {
          choose({ tab });
        }
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [tabs, choose, helping, setHelping, toggleTheme, searchField, turn]);
}
