/** What `tidemark memcheck` and `asan` print: findings by owner, each with its stacks, causes and fix. */
import { formatBytes, formatCount } from "../../model/base/numbers.js";
import type { FrameJson } from "../../model/documents/documents.js";
import type {
  MemcheckJson,
  MemoryErrorJson,
  MemoryLeakJson,
  PythonStackJson,
} from "../../model/documents/memcheck_document.js";
import { oneLine } from "../../model/errors/errors.js";
import type { Screen } from "../text/output.js";

const MOST_FRAMES = 6;
/** Functions of the interpreter that only lead from Python code to an extension. */
const LEADS =
  /^(?:_?PyEval_|_?PyObject_(?:Make)?(?:Tp)?(?:Vectorc|C)all|_?PyVectorcall|cfunction_|method_vectorcall|_?PyFunction_|object_vacall|type_call|slot_tp_|__Pyx_CyFunction_)/;
/** The tool's replacements for malloc and similar functions. */
const STAND_IN = /\/vgpreload_|\/libsanitizer\/|\/lib(?:asan|clang_rt)[^/]*$/;
/** Passes a call by ctypes or cffi on to C. */
const FOREIGN = /^\S*ffi_call|^0x[0-9A-Fa-f]+ \/.*\/(?:libffi|_cffi_backend\.)/;
/** Templates of C++ libraries: only their caller is informative. */
const TEMPLATES = /\/include\/(?:c\+\+|pybind11|nanobind|boost)\//;

export function printMemcheck(screen: Screen, document: MemcheckJson, top: number): void {
  const { errors, leaks, limits } = document;
  screen.line();
  screen.line(screen.paint.bold(headline(document)));
  screen.line();
  const owners = [...new Set([...errors, ...leaks].map(({ owner }) => owner.module))];
  let left = top === 0 ? Number.POSITIVE_INFINITY : top;
  for (const module of owners) {
    const ofOwner = <Row extends { owner: { module: string } }>(rows: readonly Row[]) => {
      const rowsOf = rows.filter(({ owner }) => owner.module === module).slice(0, left);
      left -= rowsOf.length;
      return rowsOf;
    };
    const [ownErrors, ownLeaks] = [ofOwner(errors), ofOwner(leaks)];
    if (ownErrors.length + ownLeaks.length > 0) {
      screen.line(screen.paint.cyan(`In ${oneLine(module)}`));
    }
    for (const error of ownErrors) {
      printError(screen, error);
    }
    for (const leak of ownLeaks) {
      printLeak(screen, leak);
    }
  }
  const notes = [moreLine(document, top), endLine(document), hiddenLine(document), ...limits];
  for (const line of notes.filter((note) => note !== null)) {
    for (const part of screen.wrap(oneLine(line, 1_000), 0)) {
      screen.line(screen.paint.dim(part));
    }
  }
}

function moreLine({ errors, leaks }: MemcheckJson, top: number): string | null {
  const more = top === 0 ? 0 : errors.length + leaks.length - top;
  return more > 0
    ? `${formatCount(more)} more finding${more === 1 ? "" : "s"}: --top 0 shows all.`
    : null;
}

/** How the program ended by itself; AddressSanitizer ends it after an error. */
function endLine({ tool, errors, exitCode, signal }: MemcheckJson): string | null {
  if (signal !== null) {
    return tool === "asan" && errors.length > 0 ? null : `The program was ended by ${signal}.`;
  }
  return exitCode === 0 || exitCode === null ? null : `The program's exit code was ${exitCode}.`;
}

function headline(document: MemcheckJson): string {
  const { errors, leaks, leaksKnown, tool, toolVersion, processes } = document;
  const count = (number: number, word: string) =>
    `${formatCount(number)} ${word}${number === 1 ? "" : "s"}`;
  const leaked = leaksKnown
    ? count(leaks.length, "leak")
    : leaks.length > 0
      ? `at least ${count(leaks.length, "leak")}`
      : "leaks unknown";
  const found =
    errors.length + leaks.length > 0
      ? `${count(errors.length, "memory error")}, ${leaked}${document.instrumented === false ? "; other code than malloc, free, memcpy and the like was not checked" : ""}`
      : nothingFound(document);
  const where = processes.length > 1 ? ` in ${processes.length} processes` : "";
  return `${found}${where} (${tool === "asan" ? "AddressSanitizer, " : ""}${toolVersion})`;
}

/** Claims no more than was checked. */
function nothingFound({ instrumented, leaksKnown, limits, suppressed }: MemcheckJson): string {
  if (instrumented === false) {
    const leaks = leaksKnown ? ", no leaks" : ", leaks unknown";
    return `No errors in calls of malloc, free, memcpy and the like${leaks}; other code was not checked`;
  }
  const where =
    suppressed.libraries > 0
      ? " in the program's own code"
      : limits.length > 0 && leaksKnown
        ? " in what could be checked"
        : "";
  return leaksKnown
    ? `No memory errors and no leaks${where}`
    : `No memory errors${where}, leaks unknown`;
}

function printError(screen: Screen, error: MemoryErrorJson): void {
  const times = error.count > 1 ? `, ${formatCount(error.count)} times` : "";
  screen.line(`  ${screen.paint.red(error.title)}: ${oneLine(error.message)}${times}`);
  printStack(screen, "where", error.stack);
  if (error.freed !== undefined) {
    printStack(screen, "freed", error.freed);
  }
  if (error.allocated !== undefined) {
    printStack(screen, /^Uninit/.test(error.kind) ? "created" : "allocated", error.allocated);
  }
  if (error.python !== undefined) {
    printPython(screen, error.python);
  }
  printAdvice(screen, error);
}

function printLeak(screen: Screen, leak: MemoryLeakJson): void {
  const [title = ""] = leak.explanation.split(". ");
  const blocks = `${formatCount(leak.blocks)} block${leak.blocks === 1 ? "" : "s"}`;
  screen.line(`  ${screen.paint.yellow(title)}: ${formatBytes(leak.bytes)} in ${blocks}`);
  printStack(screen, "allocated", leak.stack);
  printAdvice(screen, leak);
}

function printAdvice(screen: Screen, { causes, fix }: MemoryErrorJson | MemoryLeakJson): void {
  const labelled = (label: string, text: string) => {
    for (const [index, line] of screen.wrap(text, 14).entries()) {
      screen.line(`    ${(index === 0 ? label : "").padEnd(10)}${line}`);
    }
  };
  if (causes.length > 0) {
    labelled("causes", causes.join("; "));
  }
  labelled("fix", fix);
  screen.line();
}

/**
 * Without the tool's own frames, and down to the call from Python code, whose frames are shown as Python's own. `free`
 * and the like are shown if ctypes or cffi called them.
 */
function printStack(screen: Screen, label: string, whole: readonly FrameJson[]): void {
  const passedOn = whole.findIndex((frame) => FOREIGN.test(`${frame.function} ${frame.file}`));
  const stack = passedOn > 0 ? whole.slice(0, passedOn) : whole;
  const ofProgram = stack.filter(({ file }, index) => index > 1 || !STAND_IN.test(file));
  const called = ofProgram.length > 0 ? ofProgram : stack;
  const plain = called.filter(({ file }) => !TEMPLATES.test(file));
  const own = plain.length > 0 ? plain : called;
  const end = own.findIndex(({ function: name }) => LEADS.test(name));
  const native = (end < 0 ? own : own.slice(0, Math.max(1, end))).slice(0, MOST_FRAMES);
  for (const [index, { function: name, file, line }] of native.entries()) {
    const place = line > 0 ? `${file}:${line}` : STAND_IN.test(file) ? "" : file;
    const text = oneLine(`${name} ${place}`.trimEnd(), screen.cuts ? 400 : 1_000);
    screen.line(
      `    ${(index === 0 ? label : "").padEnd(10)}${screen.cutMiddle(text, screen.columns - 14)}`,
    );
  }
}

function printPython(screen: Screen, { stack, precision }: PythonStackJson): void {
  for (const [index, { function: name, file, line }] of stack.slice(0, MOST_FRAMES).entries()) {
    const near = index === 0 && precision === "near" ? " (or a line before)" : "";
    const text = oneLine(`${name} ${file}:${line}${near}`, 1_000);
    screen.line(
      `    ${(index === 0 ? "python" : "").padEnd(10)}${screen.cutMiddle(text, screen.columns - 14)}`,
    );
  }
}

/** "2 in numpy, 1 in bad (--module bad shows it)". */
function librariesText(libraries: MemcheckJson["leftOutLibraries"]): string {
  const shown = libraries.slice(0, 5).map(({ module, reports }) => `${reports} in ${module}`);
  const more = libraries.length > 5 ? ` and ${libraries.length - 5} other packages` : "";
  const name = libraries.length === 1 ? oneLine(libraries[0]?.module ?? "") : "NAME";
  return `of installed libraries: ${oneLine(shown.join(", "))}${more} (--module ${name} shows them)`;
}

function hiddenLine({ suppressed, leftOutLibraries }: MemcheckJson): string | null {
  const parts: [number, string][] = [
    [suppressed.importOnly, "that importing alone causes"],
    [suppressed.interpreter, "of the interpreter"],
    [suppressed.libraries, librariesText(leftOutLibraries)],
    [suppressed.system, "of the system's libraries and programs"],
    [suppressed.suppressionFiles, "that --suppressions names"],
  ];
  const said = parts
    .filter(([count]) => count > 0)
    .map(([count, words]) => `${formatCount(count)} ${words}`);
  return said.length === 0 ? null : `Left out: ${said.join(", ")}; --all shows everything.`;
}
