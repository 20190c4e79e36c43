/** A table of stacks with figures of each; the row that was chosen shows its whole stack below. */
import { type ReactNode, useState } from "react";
import type { StackFrameJson } from "../../../../src/model/documents/fleet_document.js";
import { formatCount } from "../../format/numbers.js";
import { type Column, DataTable } from "../../widgets/DataTable.js";

export interface StackRow {
  /** Leaf first. */
  readonly stack: StackFrameJson[];
}

/** A figure of each row, beside its stack. */
export interface StackFigure<Row> {
  readonly id: string;
  readonly name: string;
  readonly title?: string;
  readonly wide?: boolean;
  readonly of: (row: Row) => number;
  readonly text: (row: Row) => ReactNode;
}

interface StackTableProps<Row> {
  name: string;
  rows: readonly Row[];
  figures: readonly StackFigure<Row>[];
  sortedBy: string;
  empty: string;
  /** What was left out of the table, and what could not be seen. */
  notes: readonly string[];
}

export function StackTable<Row extends StackRow>({
  name,
  rows,
  figures,
  sortedBy,
  empty,
  notes,
}: StackTableProps<Row>) {
  // The rows are new ones after each update of the page.
  const [chosenKey, choose] = useState<string | null>(null);
  const chosen = rows.find((row) => keyOf(row) === chosenKey);
  const columns: Column<Row>[] = [
    ...figures.map(({ id, name, title, wide = false, of, text }) => ({
      id,
      name,
      ...(title === undefined ? {} : { title }),
      track: "minmax(5rem, 7rem)",
      numeric: true,
      wide,
      cell: text,
      order: of,
    })),
    {
      id: "function",
      name: "Function",
      track: "minmax(8rem, 1.2fr)",
      cell: ({ stack }) => <code>{frameText(stack[0])}</code>,
      order: ({ stack }) => frameText(stack[0]),
    },
    {
      id: "callers",
      name: "Called by",
      track: "minmax(8rem, 2fr)",
      wide: true,
      cell: ({ stack }) => <span className="place">{stackText(stack.slice(1))}</span>,
      order: ({ stack }) => stackText(stack.slice(1)),
    },
  ];
  return (
    <>
      <DataTable
        name={name}
        rows={rows}
        columns={columns}
        keyOf={keyOf}
        sortedBy={sortedBy}
        open={(row) => choose(row === chosen ? null : keyOf(row))}
        empty={empty}
      />
      {chosen !== undefined && (
        <ol className="fleet-stack" aria-label="Stack, the allocating function first">
          {keyed(chosen.stack).map(([key, frame]) => (
            <li key={key}>
              <code>{frame.function}</code> <span className="place">{placeOf(frame, false)}</span>
            </li>
          ))}
        </ol>
      )}
      {notes.map((sentence) => (
        <p key={sentence} className="note fleet-note">
          {sentence}
        </p>
      ))}
    </>
  );
}

/** "3 other stacks: +2.0 MiB"; nothing if none was left out. */
export function othersNote(stacks: number, amount: string): string[] {
  return stacks === 0
    ? []
    : [`${formatCount(stacks)} other ${stacks === 1 ? "stack" : "stacks"}: ${amount}`];
}

/** Files of one name may lie in several folders. */
function keyOf({ stack }: StackRow): string {
  return stack.map((frame) => `${frame.function} ${placeOf(frame, false)}`).join("\n");
}

/** A recursive stack holds a frame more than once. */
function keyed(stack: readonly StackFrameJson[]): [string, StackFrameJson][] {
  return stack.map((frame, depth) => [`${depth} ${frameText(frame)}`, frame]);
}

/** Leaf first, as "load app.py:12 ← main app.py:40". */
function stackText(stack: readonly StackFrameJson[]): string {
  return stack.map(frameText).join(" ← ");
}

function frameText(frame: StackFrameJson | undefined): string {
  return frame === undefined ? "no stack" : `${frame.function} ${placeOf(frame, true)}`.trimEnd();
}

function placeOf({ file, line }: StackFrameJson, briefly: boolean): string {
  const name = briefly ? (file.split("/").at(-1) ?? "") : file;
  return line > 0 && name !== "" ? `${name}:${line}` : name;
}
