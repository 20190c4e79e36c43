/** `tidemark memcheck`: a program under Valgrind, its reports as a document. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { checkedProgram } from "../inspect/index.js";
import type { OnProgress, Pid } from "../model/base/units.js";
import type { MemcheckJson } from "../model/documents/memcheck_document.js";
import { damageOf, findingsOf, mayBeOfImports, WEAK_LEAKS } from "./findings/document.js";
import { makesObject } from "./findings/explanations.js";
import { absentModules } from "./findings/loaded_modules.js";
import { Owners } from "./findings/owners.js";
import { XmlIntervals } from "./findings/python_frames.js";
import { withRepeats } from "./findings/repeated_errors.js";
import { importOnlySignatures } from "./import_only.js";
import { readXmlFolder, valgrindWords } from "./memcheck_run.js";
import type { Report, ReportFile } from "./reports/report.js";
import {
  INTERRUPTED,
  otherPython,
  requireReports,
  runTool,
  type ToolRequest,
  watchedEnvironment,
  withReportFolder,
} from "./tool_run.js";
import { readSuppressions, valgrindVersion } from "./toolchain/tools.js";

export interface MemcheckRequest extends ToolRequest {
  /** The user's suppression files for Valgrind. */
  readonly suppressions: readonly string[];
}

/**
 * Runs the program; it keeps its input and output. An abort of `until` interrupts the program, and the document has
 * what was found up to then. `onProgress` counts MiB of XML. Throws TM-E090 without Valgrind, TM-E003 and TM-E002 for
 * a bad suppression file, TM-E009 and TM-E091 if the program cannot be started.
 */
export async function memcheckDocument(
  request: MemcheckRequest,
  onProgress: OnProgress,
): Promise<MemcheckJson> {
  const { until, note, all, modules, suppressions, onElapsed } = request;
  const toolVersion = valgrindVersion();
  const suppressed = readSuppressions(suppressions);
  const { command, python } = checkedProgram(request.command);
  note(`${command[0]} runs under ${toolVersion}, 20 to 100 times slower`);
  return await withReportFolder(async (folder) => {
    const words = [...valgrindWords(folder, { suppressions, all }), ...command];
    const environment = watchedEnvironment("memcheck", folder, {});
    const run = { command: words, environment, isShown: true, until, onElapsed };
    const end = await runTool(run);
    const files = await readXmlFolder(folder, onProgress);
    if (!until.aborted) {
      requireReports(files.length, "Valgrind", end);
    }
    const owners = new Owners(python);
    const shown = withoutLiving(files, folder, all);
    const needsImports = mayBeOfImports(shown, { all, isFatal: false, modules, owners });
    const importOnly =
      python === null || !needsImports
        ? new Set<string>()
        : await importOnlySignatures({
            python,
            modules: librariesIn(files, owners),
            toolVersion,
            until,
            note,
            onElapsed,
          });
    const intervals = new Map<Pid, XmlIntervals>(
      files.map(({ pid, reports }) => [pid, new XmlIntervals(folder, pid, reports)]),
    );
    const repeats = shown.map((file) =>
      withRepeats(file, intervals.get(file.pid) ?? new XmlIntervals(folder, file.pid, []), owners),
    );
    const pythonOf = new Map(repeats.flatMap((repeated) => [...repeated.pythonOf]));
    const found = findingsOf(
      repeats.map(({ file }) => file),
      {
        all,
        isFatal: false,
        modules,
        importOnly,
        suppressions: suppressed,
        owners,
        pythonAt: (report) =>
          report.isLeak
            ? undefined
            : (pythonOf.get(report) ?? intervals.get(report.pid)?.at(report)),
      },
    );
    const damage = damageOf(files);
    return {
      schema: "tidemark.memcheck/1",
      tool: "memcheck",
      toolVersion,
      command: [...command],
      exitCode: end.exitCode,
      signal: end.signal,
      ...found,
      // Valgrind searches for leaks when a process ends, and writes them last.
      leaksKnown: damage.length === 0 && !until.aborted,
      limits: [
        ...damage,
        ...otherPython(python),
        ...(python === null && needsImports ? [NOT_COMPARED] : []),
        ...absentModules(modules, folder, owners),
        ...(until.aborted ? [INTERRUPTED] : []),
      ],
    };
  });
}

/** Extensions of installed packages that occur in a stack. */
function librariesIn(files: readonly ReportFile[], owners: Owners): string[] {
  const names = new Set<string>();
  const objects = new Set(
    files.flatMap(({ reports }) =>
      reports.flatMap(({ stack }) => stack.map(({ object }) => object)),
    ),
  );
  for (const object of objects) {
    const { kind, module } = owners.ofObject(object);
    if (kind === "library" && /^[A-Za-z_][\w.]*$/.test(module)) {
      names.add(module);
    }
  }
  return [...names].sort();
}

/**
 * Without blocks to which something still points, or that are lost with the block that points to them; only `--all`
 * shows these. A Python object is an exception: when the interpreter has ended, what the garbage collector tracks is
 * still in its list, so that Valgrind calls a leaked list or dict reachable or indirectly lost; and the list's links
 * have flags in their lowest bits, so that it may call the object possibly lost.
 */
function withoutLiving(files: readonly ReportFile[], folder: string, all: boolean): ReportFile[] {
  return files.map((file) => {
    const hasEnded = existsSync(join(folder, `finished.${file.pid}`));
    const isShown = ({ kind, stack }: Report) =>
      all || !WEAK_LEAKS.has(kind) || (hasEnded && makesObject(stack));
    const kept = file.reports.flatMap((report, at) => (isShown(report) ? [at] : []));
    return {
      ...file,
      reports: kept.flatMap((at) => file.reports[at] ?? []),
      counts: kept.map((at) => file.counts[at] ?? 1),
    };
  });
}

const NOT_COMPARED =
  "The command itself is not a Python that was recognized: errors that importing a library alone causes may be among these. Name the Python: memcheck -- python ...";
