/** The document: reports of all processes, deduplicated, attributed to their owners, explained. */
import type { Pid } from "../../model/base/units.js";
import type { FrameJson } from "../../model/documents/documents.js";
import type {
  MemcheckJson,
  MemoryErrorJson,
  MemoryLeakJson,
  OwnerJson,
  PythonStackJson,
} from "../../model/documents/memcheck_document.js";
import {
  type NativeFrame,
  type Report,
  type ReportFile,
  SIGNATURE_FRAMES,
  signatureOf,
} from "../reports/report.js";
import { endedTooEarly, explain, isAbort, isCrash, severityOf } from "./explanations.js";
import { isForeignCall, type Owners } from "./owners.js";
import { lineOf } from "./repeated_errors.js";

export interface Selection {
  /** Include everything: also reports of the interpreter, libraries and the system. */
  readonly all: boolean;
  /** Whether the tool ends the program at an error, which therefore is shown whoever caused it. */
  readonly isFatal: boolean;
  /** Also include libraries whose module is this one or in this package. */
  readonly modules: readonly string[];
  /** Signatures of reports that imports alone cause. */
  readonly importOnly: ReadonlySet<string>;
  /** Names of the entries in the user's suppression files. */
  readonly suppressions: ReadonlySet<string>;
  readonly owners: Owners;
  readonly pythonAt: (report: Report) => PythonStackJson | undefined;
}

type Findings = Pick<
  MemcheckJson,
  "errors" | "leaks" | "suppressed" | "leftOutLibraries" | "processes"
>;

/** Kinds of leaks to which something still points, or may point. */
export const WEAK_LEAKS: ReadonlySet<string> = new Set([
  "Leak_StillReachable",
  "Leak_IndirectlyLost",
  "Leak_PossiblyLost",
]);
/** One or two such blocks of one place may be kept on purpose, in a static variable of the extension. */
const FEWEST_WEAK_BLOCKS = 3;

interface Group {
  report: Report;
  readonly owner: OwnerJson;
  count: number;
  /** Not only weak leaks. */
  isProven: boolean;
  /** Bytes and blocks of a leak by process, because a fork also reports those of its parent. */
  readonly lost: Map<Pid, { bytes: number; blocks: number }>;
  python: PythonStackJson | undefined;
}

export function findingsOf(files: readonly ReportFile[], selection: Selection): Findings {
  const suppressed = {
    ...{ importOnly: 0, interpreter: 0, libraries: 0, system: 0 },
    suppressionFiles: suppressedBy(files, selection.suppressions),
  };
  const groups = new Map<string, Group>();
  const leftOut = new Set<string>();
  const libraries = new Map<string, number>();
  for (const { reports, counts } of files) {
    for (const [index, report] of reports.entries()) {
      const { owner, frame } = selection.owners.of(report);
      const why = reasonToLeaveOut(report, owner, selection);
      if (why !== null) {
        const signature = `${report.pid} ${signatureOf(report)}`;
        if (!leftOut.has(signature)) {
          suppressed[why] += 1;
          leftOut.add(signature);
          if (why === "libraries") {
            const [name = ""] = owner.module.split(".");
            libraries.set(name, (libraries.get(name) ?? 0) + 1);
          }
        }
        continue;
      }
      add(groups, { report, owner, frame, count: counts[index] ?? 1 }, selection);
    }
  }
  const all = [...groups.values()];
  const errors = withoutConsequences(all.filter(({ report }) => !report.isLeak));
  const leaks = all.filter(
    (group) =>
      group.report.isLeak &&
      (selection.all || group.isProven || mostLost(group).blocks >= FEWEST_WEAK_BLOCKS),
  );
  return {
    processes: [...new Set(files.map(({ pid }) => pid))].filter((pid) => pid > 0),
    errors: errors
      .sort((a, b) => severityOf(a.report) - severityOf(b.report) || b.count - a.count)
      .map((group) => errorOf(group, errors)),
    leaks: leaks.map(leakOf).sort((a, b) => b.bytes - a.bytes),
    suppressed,
    leftOutLibraries: [...libraries]
      .map(([module, reports]) => ({ module, reports }))
      .sort((a, b) => b.reports - a.reports),
  };
}

/**
 * Without a crash, or a report of undefined behaviour, at the place of another error, or a crash at its address: both are
 * the same mistake.
 */
function withoutConsequences(errors: readonly Group[]): Group[] {
  const placeOf = ({ report: { stack } }: Group) => {
    const [leaf] = stack;
    return leaf === undefined || leaf.line === 0 ? leaf?.address : `${leaf.file}:${leaf.line}`;
  };
  return errors.filter((group) => {
    const { kind } = group.report;
    if (!/^(?:FatalSignal|undefined-behavior)$/.test(kind)) {
      return true;
    }
    const place = placeOf(group);
    const address = addressOf(group);
    const cause = errors.find(
      (other) =>
        other.report.kind !== kind &&
        ((place !== undefined && placeOf(other) === place) ||
          (address !== undefined && addressOf(other) === address)),
    );
    if (cause === undefined) {
      return true;
    }
    if (kind === "FatalSignal") {
      const { report } = cause;
      cause.report = { ...report, message: `${report.message}; it ended the process` };
    }
    return false;
  });
}

/** The process and the address in no block that it accessed: "4242 0x8". */
function addressOf({ report: { pid, message } }: Group): string | undefined {
  const address = /\baddress (0x[0-9a-f]+)(?: is in no block)?/.exec(message)?.[1];
  return address === undefined ? undefined : `${pid} ${address}`;
}

/** Errors and leaks that Valgrind left out because of the user's suppression files. */
function suppressedBy(files: readonly ReportFile[], names: ReadonlySet<string>): number {
  return files
    .flatMap(({ suppressed }) => [...(suppressed ?? [])])
    .reduce((sum, [name, count]) => sum + (names.has(name) ? count : 0), 0);
}

function reasonToLeaveOut(
  report: Report,
  { kind, module }: OwnerJson,
  {
    all,
    isFatal,
    modules,
    importOnly,
  }: Pick<Selection, "all" | "isFatal" | "modules" | "importOnly">,
): Exclude<keyof MemcheckJson["suppressed"], "suppressionFiles"> | null {
  const isNamed = modules.some((name) => module === name || module.startsWith(`${name}.`));
  const endsProgram = isFatal && !report.isLeak && report.kind !== "undefined-behavior";
  if (all || isNamed || endsProgram) {
    return null;
  }
  if (kind !== "own" && !isBrokenObject(report, kind)) {
    return kind === "library" ? "libraries" : kind;
  }
  return isMadeAtImport(report) || importOnly.has(signatureOf(report)) ? "importOnly" : null;
}

/**
 * Whether one of the reports would be shown that importing a library alone may cause. An extension of the program can
 * not occur in such a run.
 */
export function mayBeOfImports(
  files: readonly ReportFile[],
  selection: Omit<Selection, "importOnly" | "suppressions" | "pythonAt">,
): boolean {
  const { owners } = selection;
  return (
    !selection.all &&
    files.some(({ reports }) =>
      reports.some((report) => {
        const { owner } = owners.of(report);
        const isAlike = ({ object }: NativeFrame) => owners.ofObject(object).kind !== "own";
        return (
          report.stack.slice(0, SIGNATURE_FRAMES).every(isAlike) &&
          reasonToLeaveOut(report, owner, { ...selection, importOnly: new Set() }) === null
        );
      }),
    )
  );
}

/**
 * Python keeps what a module creates once, when it is imported, until the process ends, so such a leak does not grow.
 */
function isMadeAtImport({ isLeak, stack }: Report): boolean {
  return isLeak && stack.some(({ function: name }) => /^PyInit_|^PyModule_Exec/.test(name));
}

/**
 * The interpreter itself uses no freed memory: if it does, or crashes, an extension released a reference that it did
 * not own. The object is freed in the interpreter's code, so no stack names the extension.
 */
function isBrokenObject({ isLeak, kind, freed }: Report, owner: OwnerJson["kind"]): boolean {
  return (
    !isLeak &&
    ((owner === "interpreter" && freed.length > 0) || /^(?:FatalSignal|SEGV|BUS)$/.test(kind))
  );
}

interface Added {
  readonly report: Report;
  readonly owner: OwnerJson;
  /** The owner's frame nearest to the leaf. */
  readonly frame: NativeFrame | undefined;
  readonly count: number;
}

/** Reports of the same kind at the same place of the owner's code are one; the first that is not weak represents all. */
function add(groups: Map<string, Group>, added: Added, { pythonAt }: Selection): void {
  const { report, owner, count } = added;
  const python = pythonAt(report);
  const key = keyOf(added, python);
  const group = groups.get(key) ?? {
    ...{ report, owner, count: 0, isProven: false },
    ...{ lost: new Map<Pid, { bytes: number; blocks: number }>(), python: undefined },
  };
  groups.set(key, group);
  group.count += count;
  if (!group.isProven && !WEAK_LEAKS.has(report.kind)) {
    group.isProven = true;
    group.report = report;
  }
  const { bytes, blocks } = group.lost.get(report.pid) ?? { bytes: 0, blocks: 0 };
  group.lost.set(report.pid, { bytes: bytes + report.bytes, blocks: blocks + report.blocks });
  group.python ??= python;
}

function keyOf({ report, owner, frame }: Added, python: PythonStackJson | undefined): string {
  const { isLeak, kind, freed, allocated } = report;
  if (endedTooEarly(report) || (isBrokenObject(report, owner.kind) && freed.length > 0)) {
    // One object that was freed too early causes an error at each of its later uses.
    const places = [freed, allocated].map(([first, second]) =>
      [first, second].map((at) => `${at?.function}:${at?.file}:${at?.line}`).join(),
    );
    return ["object", ...places].join("|");
  }
  const place =
    frame === undefined ? signatureOf(report) : `${frame.function}:${frame.file}:${frame.line}`;
  // What ctypes and cffi call has the same C stack at each Python line, and for each kind of error.
  const call =
    isLeak || !isForeignCall(report.stack)
      ? []
      : [explain(report).title, python === undefined ? "" : lineOf(python)];
  return [isLeak ? "leak" : kind, owner.module, place, ...call].join("|");
}

/** The figures of the process that leaked most. */
function mostLost({ lost }: Group): { readonly bytes: number; readonly blocks: number } {
  return [...lost.values()].sort((a, b) => b.bytes - a.bytes)[0] ?? { bytes: 0, blocks: 0 };
}

function errorOf(group: Group, all: readonly Group[]): MemoryErrorJson {
  const { report, owner, count, python } = group;
  const { kind, message, stack, allocated, freed, pid } = report;
  const { title, explanation, causes, fix } = explain(report);
  const isConsequence =
    isCrash(report) &&
    !isAbort(report) &&
    all.some((other) => other !== group && other.report.pid === pid);
  return {
    kind,
    title: isConsequence ? "Crash" : title,
    count,
    message,
    owner,
    stack: framesOf(stack),
    ...(allocated.length === 0 ? {} : { allocated: framesOf(allocated) }),
    ...(freed.length === 0 ? {} : { freed: framesOf(freed) }),
    ...(python === undefined ? {} : { python }),
    explanation,
    causes: isConsequence ? ["an error of the same process that is listed here, too"] : [...causes],
    fix: isConsequence ? "Fix the other errors of this process first." : fix,
    pid,
  };
}

const LEAK_KINDS: Readonly<Record<string, string>> = {
  Leak_DefinitelyLost: "definitely-lost",
  Leak_PossiblyLost: "possibly-lost",
  Leak_IndirectlyLost: "indirectly-lost",
  Leak_StillReachable: "still-reachable",
};

function leakOf(group: Group): MemoryLeakJson {
  const { report, owner } = group;
  const { kind, stack } = report;
  const { bytes, blocks } = mostLost(group);
  const { title, explanation, causes, fix } = explain(report);
  return {
    kind: LEAK_KINDS[kind] ?? kind,
    bytes,
    blocks,
    owner,
    stack: framesOf(stack),
    explanation: `${title}. ${explanation}`,
    causes: [...causes],
    fix,
  };
}

function framesOf(frames: readonly NativeFrame[]): FrameJson[] {
  return frames.map(({ function: name, file, line, object, address }) => ({
    function: name === "" ? address : name,
    file: file === "" ? object : file,
    line,
    kind: "native",
  }));
}

/** One sentence about each file that is damaged. */
export function damageOf(files: readonly ReportFile[]): string[] {
  return files.flatMap(({ pid, damage }: { pid: Pid; damage: string | null }) =>
    damage === null ? [] : [`The report of process ${pid} is incomplete: ${damage}.`],
  );
}
