/** The program's source with a bar beside each line that allocates. */
import { useMemo, useState } from "react";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import { isUnknown } from "../../../src/model/profile/imported.js";
import type { ProfileSnapshot } from "../../../src/model/profile/profile.js";
import { type Choices, isObjects } from "../choices/choices.js";
import { formatBytes, formatCount } from "../format/numbers.js";
import { amountsOf, type FileAmounts, type LineRun, runsOf } from "./sourceLines.js";
import "./lines.css";

interface SourcePanelProps {
  report: ReportDocument;
  snapshot: ProfileSnapshot | null;
  rows: Uint32Array;
  choices: Choices;
}

export function SourcePanel({ report, snapshot, rows, choices }: SourcePanelProps) {
  const { tables, sources = [] } = report;
  const files = useMemo(
    () => amountsOf(tables, snapshot, rows, choices.value, sources),
    [tables, snapshot, rows, choices.value, sources],
  );
  // Another figure sorts the files differently; the open one stays.
  const [name, setName] = useState(files[0]?.source.file);
  const chosen = files.find(({ source }) => source.file === name) ?? files[0];
  if (chosen === undefined) {
    return <p className="empty">This page has no source text.</p>;
  }
  const amount = isObjects(choices.value) ? formatCount : formatBytes;
  return (
    <div className="source">
      <label className="source-file">
        File
        <select value={chosen.source.file} onChange={(event) => setName(event.target.value)}>
          {files.map(({ source, total }) => (
            <option key={source.file} value={source.file}>
              {`${source.file} (${amount(total)})`}
            </option>
          ))}
        </select>
        {chosen.source.changed && (
          <span className="hint">The file was changed after the recording began.</span>
        )}
      </label>
      <Lines
        key={chosen.source.file}
        file={chosen}
        amount={amount}
        knowsAllocators={!isUnknown(report.summary.imported, "python")}
      />
    </div>
  );
}

interface LinesProps {
  file: FileAmounts;
  amount: (value: number) => string;
  /** False if the source of an imported recording does not separate Python's allocators from others. */
  knowsAllocators: boolean;
}

function Lines({ file, amount, knowsAllocators }: LinesProps) {
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const text = useMemo(() => file.source.text.split("\n"), [file.source.text]);
  const runs = useMemo(() => runsOf(text.length, file.lines), [text, file.lines]);
  const largest = [...file.lines.values()].reduce(
    (most, { python, native }) => Math.max(most, python + native),
    0,
  );
  const open = (run: LineRun) => setOpened(new Set([...opened, run.first]));
  return (
    <div className="source-lines">
      <table aria-label={`Lines of ${file.source.file}`}>
        <tbody>
          {runs.flatMap((run) =>
            run.folded && !opened.has(run.first)
              ? [<FoldedLines key={run.first} run={run} open={open} />]
              : numbersOf(run).map((number) => (
                  <SourceLine
                    key={number}
                    number={number}
                    line={text[number - 1] ?? ""}
                    file={file}
                    largest={largest}
                    amount={amount}
                    knowsAllocators={knowsAllocators}
                  />
                )),
          )}
        </tbody>
      </table>
    </div>
  );
}

function numbersOf({ first, last }: LineRun): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

function FoldedLines({ run, open }: { run: LineRun; open: (run: LineRun) => void }) {
  return (
    <tr className="source-folded">
      <td colSpan={5}>
        <button type="button" className="quiet" onClick={() => open(run)}>
          ⋯ {formatCount(run.last - run.first + 1)} lines
        </button>
      </td>
    </tr>
  );
}

interface SourceLineProps extends LinesProps {
  number: number;
  line: string;
  largest: number;
}

function SourceLine({ number, line, file, largest, amount, knowsAllocators }: SourceLineProps) {
  const { python = 0, native = 0, copied = 0 } = file.lines.get(number) ?? {};
  const total = python + native;
  const width = (part: number) => `${(100 * part) / largest}%`;
  return (
    <tr className={total > 0 ? "source-allocates" : ""}>
      <td className="source-amount">{total > 0 ? amount(total) : ""}</td>
      <td className="source-bar">
        {total > 0 && (
          <span
            title={
              knowsAllocators
                ? `Python ${amount(python)}, native ${amount(native)}`
                : `${amount(total)}, whose allocator is unknown`
            }
          >
            <i className="python" style={{ width: width(python) }} />
            <i className="native" style={{ width: width(native) }} />
          </span>
        )}
      </td>
      {file.hasCopies && (
        <td className="source-amount" title="Bytes copied by memcpy and memmove so far">
          {copied > 0 ? `${formatBytes(copied)} copied` : ""}
        </td>
      )}
      <td className="source-number">{number}</td>
      <td className="source-text">{line}</td>
    </tr>
  );
}
