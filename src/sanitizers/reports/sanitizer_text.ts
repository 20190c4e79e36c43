/**
 * Reports of AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer, as printed with FRAME_FORMAT:
 *
 *     ==PID==ERROR: AddressSanitizer: KIND on address ...          FILE:LINE:COLUMN: runtime error: MESSAGE
 *     WRITE of size 1 at 0x602000003280 thread T0                      #0|0x7effc1c5a2b7|overflow|/src/f.c|4|/lib/f.so
 *         #0|0x7effc1c5a2b7|overflow|/src/f.c|4|/lib/f.so
 *
 *     freed by thread T0 here:                                     Direct leak of 1000 byte(s) in 1 object(s) allocated from:
 *         #0|...                                                       #0|...
 */
import type { Pid } from "../../model/base/units.js";
import { type NativeFrame, type Report, type ReportFile, withoutRaise } from "./report.js";

/** For the option stack_trace_format. */
export const FRAME_FORMAT = "    #%n|%p|%f|%s|%l|%m";

const FRAME = /^\s*#\d+\|(0x[0-9a-f]+)\|([^|]*)\|([^|]*)\|(\d*)\|(.*)$/;
const ERROR =
  /^==(\d+)==ERROR: (?:AddressSanitizer|LeakSanitizer): (?:attempting )?([\w-]+(?: \([\w-]+\))?)(.*)$/;
const RUNTIME_ERROR = /^(.*?): runtime error: (.*)$/;
const LEAK = /^(Direct|Indirect) leak of (\d+) byte\(s\) in (\d+) object\(s\) allocated from:/;
const MOST_REPORTS = 100_000;
const MOST_FRAMES = 500;

type Section = "stack" | "freed" | "allocated" | null;
interface OpenReport {
  readonly isLeak: boolean;
  readonly kind: string;
  message: string;
  readonly bytes: number;
  readonly blocks: number;
  readonly offset: number;
  readonly stack: NativeFrame[];
  readonly freed: NativeFrame[];
  readonly allocated: NativeFrame[];
}

/** Lines that are not part of a report are skipped, so garbage yields no reports. */
export function readSanitizerText(text: string, pid: Pid): ReportFile {
  const reports: OpenReport[] = [];
  let open: OpenReport | null = null;
  let section: Section = null;
  let isLeakList = false;
  let leftOut = 0;
  let offset = 0;
  for (const line of text.split("\n")) {
    const begun = reportOf(line, offset);
    offset += line.length + 1;
    const frame = FRAME.exec(line);
    if (begun !== null) {
      isLeakList = begun.kind === "detected";
      open = null;
      if (!isLeakList && reports.length < MOST_REPORTS) {
        open = begun;
        reports.push(begun);
      } else {
        leftOut += isLeakList ? 0 : 1;
      }
      section = "stack";
    } else if (frame !== null && open !== null && section !== null) {
      if (open[section].length < MOST_FRAMES) {
        open[section].push(frameOf(frame));
      }
    } else if (open !== null) {
      section = sectionAfter(line, open, section);
    }
  }
  return {
    pid,
    reports: reports.map(
      (report): Report => ({
        ...report,
        stack: /^(?:FPE|ABRT|ILL)$/.test(report.kind) ? withoutRaise(report.stack) : report.stack,
        pid,
        thread: 0,
      }),
    ),
    counts: reports.map(() => 1),
    damage:
      leftOut > 0 ? `${leftOut} reports beyond the first ${MOST_REPORTS} were left out` : null,
  };
}

function reportOf(line: string, offset: number): OpenReport | null {
  const empty = { bytes: 0, blocks: 0, offset, stack: [], freed: [], allocated: [] };
  const leak = LEAK.exec(line);
  if (leak !== null) {
    const [, directness = "", bytes, blocks] = leak;
    const kind = `${directness.toLowerCase()}-leak`;
    const message = line.replace(/ allocated from:$/, "").trim();
    return { ...empty, isLeak: true, kind, message, bytes: Number(bytes), blocks: Number(blocks) };
  }
  const error = ERROR.exec(line);
  if (error !== null) {
    const [, , kind = "", rest = ""] = error;
    const words = rest.replace(
      / at pc .*$|: memory ranges .*$|(?: on (?:unknown )?address)?:?(?: 0x| \().*$| in thread .*$/,
      "",
    );
    const [address] =
      /\b0x[0-9a-f]+/.exec(
        kind === "SEGV" || kind === "BUS" ? rest.replace(/ \(pc .*$/, "") : "",
      ) ?? [];
    const place =
      address === undefined ? "" : ` at address 0x${address.slice(2).replace(/^0+(?=.)/, "")}`;
    const message = `${kind}${words}${place}`.trim().replace(/ on$/, "");
    return { ...empty, isLeak: false, kind, message };
  }
  const runtime = RUNTIME_ERROR.exec(line);
  return runtime === null
    ? null
    : { ...empty, isLeak: false, kind: "undefined-behavior", message: runtime[2] ?? "" };
}

function frameOf(match: RegExpExecArray): NativeFrame {
  const [, address = "", name = "", file = "", line = "", object = ""] = match;
  const known = (text: string) => (text === "<null>" ? "" : text);
  return {
    address,
    function: known(name),
    file: known(file),
    line: Number(line) || 0,
    object: known(object),
  };
}

/** The stack to which the frames after this line belong. */
function sectionAfter(line: string, open: OpenReport, before: Section): Section {
  if (/^(?:READ|WRITE) of size \d+/.test(line)) {
    open.message = line.replace(/ at 0x.*$/, "");
    return "stack";
  }
  const hint = /^==\d+==Hint: (.*)$/.exec(line)?.[1];
  if (hint !== undefined) {
    const words = hint.includes("high value address")
      ? "the address is one that no pointer can have; freed memory is filled with 0x55"
      : hint.replace(/\.$/, "");
    open.message = `${open.message}; ${words}`;
    return before;
  }
  if (/^0x[0-9a-f]+ is located /.test(line)) {
    open.message = `${open.message}; the address${line.replace(/^0x[0-9a-f]+/, "").replace(/ \[0x.*$/, "")}`;
    return null;
  }
  const variable = /^\s*\[\d+, \d+\) ('[^']+' \(line \d+\)) <== Memory access .*? (\w+flows)/.exec(
    line,
  );
  if (variable !== null) {
    open.message = `${open.message}; it ${variable[2]} the variable ${variable[1]}`;
    return null;
  }
  if (/^freed by thread /.test(line)) {
    return "freed";
  }
  if (/^(?:previously )?allocated by thread /.test(line)) {
    return "allocated";
  }
  return line.trim() === "" ? null : before;
}
