/** The choices that all views share: value, snapshot, processes and threads. */

import type { RefObject } from "react";
import { itemAt } from "../../../src/model/base/columns.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import { isUnknown } from "../../../src/model/profile/imported.js";
import {
  conditionOn,
  labelChoices,
  type RowCondition,
  withCondition,
} from "../../../src/model/profile/row_filter.js";
import {
  type Choices,
  type Choose,
  type ColourMode,
  type DifferenceWidth,
  isObjects,
  knownValues,
} from "../choices/choices.js";
import { formatElapsed } from "../format/numbers.js";

interface ToolbarProps {
  report: ReportDocument;
  choices: Choices;
  choose: Choose;
  searchField: RefObject<HTMLInputElement | null>;
}

const FIGURES: readonly (readonly ["live" | "peak" | "allocated", string])[] = [
  ["live", "Live"],
  ["peak", "At peak"],
  ["allocated", "Allocated"],
];

export function Toolbar({ report, choices, choose, searchField }: ToolbarProps) {
  const { snapshots, summary } = report;
  const startMs = summary.window.startMs;
  const flame = choices.tab === "flame";
  const valued = flame || choices.tab === "source";
  const known = knownValues(summary.imported);
  const unit = isObjects(choices.value) ? "Objects" : "Bytes";
  const figure = FIGURES.find(([name]) => choices.value.startsWith(name))?.[0] ?? "live";
  const snapshotName = (index: number) =>
    `${formatElapsed(itemAt(snapshots, index).timeMs, startMs)}${index === snapshots.length - 1 ? " (end)" : ""}`;
  return (
    <div className="toolbar">
      {valued && known.figures.length > 0 && (
        <Segments
          name="Figure"
          value={figure}
          options={FIGURES.filter(([name]) => known.figures.includes(name))}
          choose={(next) => choose({ value: `${next}${unit}` })}
        />
      )}
      {valued && (
        <Segments
          name="Unit"
          value={unit}
          options={known.units.map((name) => [name, name] as const)}
          choose={(next) => choose({ value: `${figure}${next}` })}
        />
      )}
      {choices.tab !== "processes" && snapshots.length > 0 && (
        <Select
          name="At"
          value={String(choices.at)}
          choose={(next) => choose({ at: Number(next) })}
        >
          {snapshots.map((snapshot, index) => (
            <option key={snapshot.timeMs} value={index}>
              {snapshotName(index)}
            </option>
          ))}
        </Select>
      )}
      {flame && snapshots.length > 1 && (
        <Select
          name="Compared with"
          value={choices.base === null ? "" : String(choices.base)}
          choose={(next) => choose({ base: next === "" ? null : Number(next) })}
        >
          <option value="">nothing</option>
          {snapshots.map((snapshot, index) => (
            <option key={snapshot.timeMs} value={index} disabled={index === choices.at}>
              {snapshotName(index)}
            </option>
          ))}
        </Select>
      )}
      {choices.tab !== "processes" && (
        <Filters report={report} filter={choices.filter} choose={choose} />
      )}
      {flame && (
        <Drawing
          choices={choices}
          choose={choose}
          knowsAllocators={!isUnknown(summary.imported, "python")}
        />
      )}
      <input
        ref={searchField}
        type="search"
        className="search"
        placeholder="Search  /"
        aria-label="Search functions and files"
        value={choices.search}
        spellCheck={false}
        onChange={(event) => choose({ search: event.target.value })}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            choose({ search: "" });
            event.currentTarget.blur();
          }
        }}
      />
    </div>
  );
}

function Filters({
  report,
  filter,
  choose,
}: {
  report: ReportDocument;
  filter: readonly RowCondition[];
  choose: Choose;
}) {
  const { processes, threads } = report.tables;
  // As in the table of processes: without the steps of a launcher, and once for each pid, whatever called exec before.
  const listed = new Set(report.summary.processes.map((process) => process.pid));
  const rowOf = new Map(processes.map(({ pid }, row) => [pid, row]));
  const isShown = (row: number) => {
    const pid = processes[row]?.pid ?? -1;
    return rowOf.get(pid) === row && (listed.size === 0 || listed.has(pid));
  };
  const shownProcesses = processes.filter((_, row) => isShown(row));
  const labels = labelChoices(report.tables);
  const asked = (key: string) => conditionOn(filter, key) ?? "";
  const change = (key: string, value: string, from = filter) =>
    choose({ filter: withCondition(from, key, value === "" ? null : value) });
  const pid = asked("process");
  const shownThreads = threads.filter(
    ({ process }) => isShown(process) && (pid === "" || String(processes[process]?.pid) === pid),
  );
  return (
    <>
      {shownProcesses.length > 1 && (
        <Select
          name="Process"
          value={pid}
          choose={(next) => change("process", next, withCondition(filter, "thread", null))}
        >
          <option value="">all {shownProcesses.length}</option>
          {shownProcesses.map((process, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: rows of a table, identified by number
            <option key={index} value={process.pid}>
              {process.pid} {process.command.join(" ").slice(0, 40)}
            </option>
          ))}
        </Select>
      )}
      {shownThreads.length > 1 && (
        <Select name="Thread" value={asked("thread")} choose={(next) => change("thread", next)}>
          <option value="">all {shownThreads.length}</option>
          {shownThreads.map(({ process, tid, name }) => (
            <option key={`${process} ${tid}`} value={tid}>
              {tid === 0 ? name || "other threads" : `${name || "thread"} ${tid}`}
            </option>
          ))}
        </Select>
      )}
      {labels.length > 0 && (
        <Select name="Label" value={asked("label")} choose={(next) => change("label", next)}>
          <option value="">any</option>
          {labels.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </Select>
      )}
      {!isUnknown(report.summary.imported, "python") && (
        <Select name="Allocator" value={asked("domain")} choose={(next) => change("domain", next)}>
          <option value="">all</option>
          <option value="python">Python</option>
          <option value="native">native</option>
          <option value="mapped">mapped</option>
        </Select>
      )}
    </>
  );
}

interface DrawingProps {
  choices: Choices;
  choose: Choose;
  knowsAllocators: boolean;
}

function Drawing({ choices, choose, knowsAllocators }: DrawingProps) {
  return (
    <>
      {choices.base === null ? (
        <Select
          name="Colour"
          value={choices.colourMode}
          choose={(next) => choose({ colourMode: next as ColourMode })}
        >
          {knowsAllocators && <option value="allocator">by allocator</option>}
          <option value="frame">by frame kind</option>
          <option value="file">by file</option>
        </Select>
      ) : (
        <Select
          name="Width"
          value={choices.differenceWidth}
          choose={(next) => choose({ differenceWidth: next as DifferenceWidth })}
        >
          <option value="growth">growth only</option>
          <option value="after">after</option>
          <option value="before">before</option>
        </Select>
      )}
      <Toggle
        name="Callers"
        title="Allocating functions first, their callers below (r)"
        on={choices.reversed}
        choose={(reversed) => choose({ reversed })}
      />
      <Toggle
        name="Flames"
        title="Roots at the bottom"
        on={choices.rootsBelow}
        choose={(rootsBelow) => choose({ rootsBelow })}
      />
    </>
  );
}

interface SegmentsProps<Value extends string> {
  name: string;
  value: Value;
  options: readonly (readonly [Value, string])[];
  choose: (value: Value) => void;
}

function Segments<Value extends string>({ name, value, options, choose }: SegmentsProps<Value>) {
  return (
    <fieldset className="segments">
      <legend className="hidden">{name}</legend>
      {options.map(([option, text]) => (
        <button
          key={option}
          type="button"
          aria-pressed={option === value}
          onClick={() => choose(option)}
        >
          {text}
        </button>
      ))}
    </fieldset>
  );
}

interface SelectProps {
  name: string;
  value: string | number;
  choose: (value: string) => void;
  children: React.ReactNode;
}

function Select({ name, value, choose, children }: SelectProps) {
  return (
    <label className="select">
      <span>{name}</span>
      <select aria-label={name} value={value} onChange={(event) => choose(event.target.value)}>
        {children}
      </select>
    </label>
  );
}

function Toggle({
  name,
  title,
  on,
  choose,
}: {
  name: string;
  title: string;
  on: boolean;
  choose: (on: boolean) => void;
}) {
  return (
    <button
      type="button"
      className="toggle"
      aria-pressed={on}
      title={title}
      onClick={() => choose(!on)}
    >
      {name}
    </button>
  );
}
