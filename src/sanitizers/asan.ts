/** `tidemark asan`: a program under AddressSanitizer, then, if it was clean, under LeakSanitizer. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { checkedProgram, type GroupEnd, type StartedPython } from "../inspect/index.js";
import { inspectProgram } from "../linux/index.js";
import type { Pid } from "../model/base/units.js";
import type { MemcheckJson } from "../model/documents/memcheck_document.js";
import { damageOf, findingsOf } from "./findings/document.js";
import { absentModules, loadedLibraries } from "./findings/loaded_modules.js";
import { Owners } from "./findings/owners.js";
import { faultStack, filesOfProcesses } from "./findings/python_frames.js";
import { DivertedLines } from "./reports/diverted_lines.js";
import type { ReportFile } from "./reports/report.js";
import { FRAME_FORMAT, readSanitizerText } from "./reports/sanitizer_text.js";
import {
  INTERRUPTED,
  otherPython,
  runTool,
  type ToolRequest,
  watchedEnvironment,
  withReportFolder,
} from "./tool_run.js";
import { ASAN_CALL, BUILD_NAME, contains, extensionsIn } from "./toolchain/builds.js";
import { findRuntime, type SanitizerRuntime } from "./toolchain/tools.js";

/** More of a report is not read. */
const MOST_BYTES = 256 << 20;
const PROMPT_MS = 200;
/**
 * Freed memory is overwritten with 0x55. The interpreter is not instrumented and would continue to use the contents of
 * an object that was freed too early; with this pattern it crashes at the first use.
 */
const FILL = "max_free_fill_size=4096";

export interface AsanRequest extends ToolRequest {
  /** Folders for the front of PYTHONPATH: instrumented builds. */
  readonly builds: readonly string[];
  /** Whether a second run looks for leaks. */
  readonly leaks: boolean;
}

interface Stage extends AsanRequest {
  readonly runtime: SanitizerRuntime;
  readonly folder: string;
}

/**
 * Runs the program; the first run keeps its input and output, and the second has none. An abort of `until` interrupts
 * the program, and the document has what was found up to then. Throws TM-E090 without a runtime, TM-E009 if the
 * program cannot be started.
 */
export async function asanDocument(request: AsanRequest): Promise<MemcheckJson> {
  const { note, leaks, all, modules, builds, until } = request;
  const { command, python } = checkedProgram(request.command);
  const runtime = runtimeOf(builds);
  const owners = new Owners(python);
  note(`${command[0]} runs under AddressSanitizer (${runtime.version}), about 2 times slower`);
  return await withReportFolder(async (folder) => {
    const stage = { ...request, command, runtime, folder };
    const end = await runStage(stage, false);
    const files = readFolder(folder, ["asan.", "undefined."]);
    files.push(...aborts(folder, files));
    const { instrumented, limits } = instrumentation(folder, { command, python, owners, builds });
    const isClean = files.every(({ reports }) => reports.length === 0) && end.signal === null;
    const unsearched: string[] = [];
    if (until.aborted) {
      unsearched.push(INTERRUPTED);
    } else if (leaks && isClean) {
      note("no error: it runs again to look for leaks, with empty input, its output discarded");
      const second = await runStage(stage, true);
      files.push(...readFolder(folder, ["leaks."]));
      unsearched.push(
        ...(until.aborted
          ? ["The run that looks for leaks was interrupted: leaks may be missing."]
          : [...leakLimits(folder), ...differentEnd(end, second)]),
      );
    } else {
      const why = !leaks
        ? "as --no-leaks asks"
        : files.some(({ reports }) => reports.length > 0)
          ? "because the run had errors: fix them first"
          : `because ${end.signal} ended the program`;
      unsearched.push(`Leaks were not looked for, ${why}.`);
    }
    const none = new Set<string>();
    const selection = {
      ...{ all, isFatal: true, modules, owners },
      ...{ importOnly: none, suppressions: none },
    };
    const found = findingsOf(files, {
      ...selection,
      pythonAt: ({ pid, isLeak, kind }) =>
        isLeak || kind === "undefined-behavior" ? undefined : faultStack(folder, pid),
    });
    return {
      schema: "tidemark.memcheck/1",
      tool: "asan",
      toolVersion: runtime.version,
      command: [...command],
      exitCode: end.exitCode,
      signal: end.signal,
      ...found,
      leaksKnown: unsearched.length === 0,
      ...(instrumented === null ? {} : { instrumented }),
      limits: [
        ...damageOf(files),
        ...otherPython(python),
        ...limits,
        ...absentModules(modules, folder, owners),
        ...unsearched,
      ],
    };
  });
}

/** The runtime of the compiler that built the extensions, because two runtimes in one process do not work. */
function runtimeOf(builds: readonly string[]): SanitizerRuntime {
  const earlier = (process.env.PYTHONPATH ?? "").split(":");
  const folders = [...builds, ...earlier.filter((folder) => basename(folder) === BUILD_NAME)];
  const isClang = folders.flatMap(extensionsIn).some((path) => contains(path, "libclang_rt.asan"));
  return findRuntime(
    isClang && process.env.CC === undefined ? { ...process.env, CC: "clang" } : process.env,
  );
}

async function runStage(stage: Stage, isLeakRun: boolean): Promise<GroupEnd> {
  const { command, runtime, folder, until, builds, onElapsed } = stage;
  const format = `stack_trace_format='${FRAME_FORMAT}'`;
  const log = (name: string) => `log_path=${join(folder, name)}`;
  const mode = isLeakRun
    ? ["detect_leaks=1", "abort_on_error=0", "exitcode=0", log("leaks")]
    : // After an abort, faulthandler writes the Python stack of exactly this moment.
      ["detect_leaks=0", "abort_on_error=1", "handle_abort=0", "handle_segv=2", log("asan"), FILL];
  const own = (name: string) => (process.env[name] ? [process.env[name]] : []);
  const environment = watchedEnvironment("asan", folder, {
    ASAN_OPTIONS: [...own("ASAN_OPTIONS"), ...mode, "malloc_context_size=50", format].join(":"),
    // If its library is loaded, this path replaces AddressSanitizer's.
    UBSAN_OPTIONS: [
      ...own("UBSAN_OPTIONS"),
      ...["print_stacktrace=1", log(isLeakRun ? "leaks" : "asan"), format],
    ].join(":"),
    LD_PRELOAD: [...runtime.libraries, process.env.LD_PRELOAD].filter(Boolean).join(":"),
  });
  environment.PYTHONPATH = [...builds, environment.PYTHONPATH].join(":");
  environment.TIDEMARK_BUILDS = builds.join(":");
  const lines = new DivertedLines((text) => process.stderr.write(text, "latin1"));
  const takeErrors = (text: string) => lines.write(text);
  // A prompt has no newline, so the program's output is passed on after a short time.
  const passOn = setInterval(() => lines.passPartialLine(), PROMPT_MS);
  const isShown = !isLeakRun;
  const end = await runTool({
    command,
    environment,
    isShown,
    until,
    takeErrors,
    onElapsed,
  }).finally(() => clearInterval(passOn));
  const reports = lines.end();
  if (reports !== "") {
    writeFileSync(join(folder, "undefined.0"), reports, "latin1");
  }
  return end;
}

function readFolder(folder: string, prefixes: readonly string[]): ReportFile[] {
  return prefixes.flatMap((prefix) =>
    filesOfProcesses(folder, prefix).map(({ path, pid }) => readReport(path, pid)),
  );
}

function readReport(path: string, pid: Pid): ReportFile {
  const { size } = statSync(path);
  const file = readSanitizerText(readFileSync(path).subarray(0, MOST_BYTES).toString("utf8"), pid);
  return size > MOST_BYTES ? { ...file, damage: "it is too large, and was cut" } : file;
}

/** LeakSanitizer stops the threads by ptrace, which a container or a debugger may prevent. */
function leakLimits(folder: string): string[] {
  const failed = filesOfProcesses(folder, "leaks.").some(({ path }) =>
    readFileSync(path, "utf8").includes("LeakSanitizer has encountered a fatal error"),
  );
  return failed
    ? [
        "LeakSanitizer could not stop the process (ptrace is not permitted here): leaks are unknown.",
      ]
    : [];
}

/** A program that reads its input may do less in the second run, whose input is empty. */
function differentEnd(first: GroupEnd, second: GroupEnd): string[] {
  const endOf = ({ exitCode, signal }: GroupEnd) => signal ?? `exit code ${exitCode}`;
  return endOf(first) === endOf(second)
    ? []
    : [
        `The run that looked for leaks ended with ${endOf(second)}, the first one with ${endOf(first)}: leaks may be missing. Its input was empty; let the program read a file instead.`,
      ];
}

/** abort() leaves no report of the sanitizer, only the Python stack that faulthandler wrote. */
function aborts(folder: string, files: readonly ReportFile[]): ReportFile[] {
  const reported = new Set(files.filter(({ reports }) => reports.length > 0).map(({ pid }) => pid));
  return filesOfProcesses(folder, "fault.")
    .filter(
      ({ path, pid }) =>
        !reported.has(pid) && readFileSync(path, "utf8").startsWith("Fatal Python error: Aborted"),
    )
    .map(({ pid }) => {
      const message = "SIGABRT ended the program; tidemark memcheck shows the C stack, too";
      const empty = { stack: [], freed: [], allocated: [], bytes: 0, blocks: 0, offset: 0 };
      const report = { ...empty, isLeak: false, kind: "ABRT", message, pid, thread: 0 };
      return { pid, reports: [report], counts: [1], damage: null };
    });
}

interface Ran extends Pick<AsanRequest, "command" | "builds"> {
  readonly python: StartedPython | null;
  readonly owners: Owners;
}

/** Whether something that ran was built with AddressSanitizer; null: not known. */
function instrumentation(
  folder: string,
  { command, python, owners, builds }: Ran,
): { instrumented: boolean | null; limits: string[] } {
  const libraries = loadedLibraries(folder);
  if (libraries === null && python !== null) {
    return { instrumented: null, limits: [] }; // no process ended by itself
  }
  const { path } = inspectProgram(command);
  const own = [...(libraries ?? []), ...(python === null ? [path] : [])].filter(
    (file) => owners.ofObject(file).kind === "own",
  );
  if (own.some((file) => contains(file, ASAN_CALL))) {
    return { instrumented: true, limits: [] };
  }
  const names = own.length === 0 ? "" : ` (${own.join(", ")})`;
  const sentence =
    builds.length > 0
      ? `The program did not import the extension that was built (${builds.join(", ")}).`
      : python === null && libraries === null
        ? `The program was not built with AddressSanitizer${names}: compile it with -g -fsanitize=address, or run tidemark memcheck, which needs no rebuild.`
        : `No extension of the program was built with AddressSanitizer${names}. Build it: tidemark asan --build EXT_DIR -- COMMAND`;
  return { instrumented: false, limits: [sentence] };
}
