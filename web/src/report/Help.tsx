import { useEffect, useRef } from "react";
import type { SummaryJson } from "../../../src/model/documents/summary_document.js";
import { precisionText } from "../../../src/model/profile/imported.js";

const KEYS: readonly (readonly [string, string])[] = [
  ["/", "search functions and files; /…/ is a pattern; Enter steps through the matches"],
  ["1 … 7", "flame graph, sites, ages, lifetimes, processes, diagnosis, source"],
  ["← → ↑ ↓", "in the flame graph: neighbours, callers and callees; in a table: rows"],
  ["Enter", "zoom to the selected rectangle"],
  ["Esc, Backspace", "zoom one step out"],
  ["Home", "zoom out to everything"],
  ["r", "callers below (reversed), and back"],
  ["t", "dark or light"],
  ["?", "this help"],
];

const POINTER: readonly (readonly [string, string])[] = [
  ["click on the timeline", "figures of the snapshot nearest to that time"],
  ["drag on the timeline", "differential flame graph: what changed between two times"],
  ["click on a rectangle", "select it and zoom to it"],
  ["Ctrl + wheel, pinch", "zoom at the pointer; sideways wheel pans"],
];

interface HelpProps {
  imported: SummaryJson["imported"];
  close: () => void;
}

export function Help({ imported, close }: HelpProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} className="help" aria-label="Keyboard and help" onClose={close}>
      <h2>Keyboard</h2>
      <Rows rows={KEYS} />
      <h2>Pointer</h2>
      <Rows rows={POINTER} />
      <h2>Words</h2>
      <p>
        <b>Live</b> is allocated and not yet freed; <b>at peak</b> is what was live when the
        profiled memory was highest; <b>allocated</b> includes everything since the start.{" "}
        {imported === undefined
          ? "All are estimates from samples; with fewer than ten samples they are only a hint."
          : `All are ${precisionText(imported)}.`}
      </p>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

function Rows({ rows }: { rows: typeof KEYS }) {
  return (
    <dl>
      {rows.map(([key, meaning]) => (
        <div key={key}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  );
}
