/** The tabs of the views; the arrow keys move between them. */
import { useRef } from "react";
import { TAB_NAMES, type Tab } from "../choices/choices.js";

interface TabListProps {
  tabs: readonly Tab[];
  tab: Tab;
  choose: (tab: Tab) => void;
}

export function TabList({ tabs, tab, choose }: TabListProps) {
  const list = useRef<HTMLDivElement>(null);
  const step = (by: number) => {
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
    if (next === undefined) {
      return;
    }
    choose(next);
    list.current?.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label="Views" ref={list}>
      {tabs.map((name) => (
        <button
          key={name}
          id={`tab-${name}`}
          type="button"
          role="tab"
          aria-selected={name === tab}
          aria-controls={`view-${name}`}
          tabIndex={name === tab ? 0 : -1}
          onClick={() => choose(name)}
          onKeyDown={(event) => {
            if (event.key === "ArrowRight") {
              step(1);
            } else if (event.key === "ArrowLeft") {
              step(-1);
            }
          }}
        >
          {TAB_NAMES[name]}
        </button>
      ))}
    </div>
  );
}
