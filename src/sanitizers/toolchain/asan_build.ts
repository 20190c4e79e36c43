/** `tidemark asan --build EXT_DIR`: builds an extension with AddressSanitizer and UndefinedBehaviorSanitizer. */

import { accessSync, constants, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { interpreterOf, startGroup } from "../../inspect/index.js";
import { shellWord } from "../../model/base/shell_word.js";
import { fileNotFound } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { buildFailed, runInterrupted, toolMissing } from "../../model/errors/tool_errors.js";
import { backendOf, buildEnvironment, stepsOf, wayOf } from "./build_steps.js";
import { ASAN_CALL, BUILD_NAME, contains, extensionsIn } from "./builds.js";
import { findRuntime } from "./tools.js";

export interface BuildRequest {
  readonly folder: string;
  /** The command of the Python to build for; its first word decides. */
  readonly command: readonly string[];
  readonly until: AbortSignal;
  /** Reports in one line that the build begins. */
  readonly note: (line: string) => void;
}

/**
 * Returns the folder to import from: EXT_DIR/build/tidemark-asan, which is replaced. Throws TM-E003, TM-E090 without a
 * compiler, TM-E092 with the compiler's first error, TM-E093 after an interrupt.
 */
export async function buildForAsan(request: BuildRequest): Promise<string> {
  const { folder, command, until, note } = request;
  const source = resolve(folder);
  const place = statSync(source, { throwIfNoEntry: false });
  if (place === undefined) {
    throw fileNotFound(folder, "folder");
  }
  const nameFolder = "name the folder of the extension's sources";
  if (!place.isDirectory()) {
    throw buildFailed(folder, "it is a file, not a folder", nameFolder);
  }
  const runtime = findRuntime();
  const { compiler } = runtime;
  if (compiler === null) {
    throw toolMissing("a C compiler", "sudo apt install gcc g++");
  }
  const python = interpreterOf(command) ?? interpreterOf(["python3"]);
  if (python === null) {
    throw buildFailed(
      folder,
      "no Python to build for",
      "name the program: asan --build DIR -- python app.py",
    );
  }
  const way = wayOf(source);
  if (way === null) {
    const nothing =
      "it has no setup.py, no pyproject.toml and no C or C++ source with a PyInit_ function";
    throw buildFailed(folder, nothing, nameFolder);
  }
  const output = join(source, "build", BUILD_NAME);
  try {
    accessSync(source, constants.W_OK); // mkdirSync says "no such file" on a file system that is read-only
    rmSync(output, { recursive: true, force: true });
    mkdirSync(output, { recursive: true });
  } catch (error) {
    const reason = reasonOf(error).message.replace(/^E[A-Z]+: ([^,]+),.*$/s, "$1");
    const next = "copy the sources to a folder that can be written";
    throw buildFailed(folder, `its folder build/${BUILD_NAME} cannot be made: ${reason}`, next);
  }
  note(`building ${folder} with AddressSanitizer`);
  const places = {
    source,
    output,
    python: resolve(python.path),
    runtime: { ...runtime, compiler },
  };
  const environment = buildEnvironment(places);
  for (const { words, variables } of stepsOf(way, places)) {
    const step = { words, environment: { ...environment, ...variables } };
    await runBuild({ ...step, source, until, folder });
  }
  const extensions = extensionsIn(output);
  if (extensions.length === 0) {
    throw buildFailed(folder, "its build made no extension module (*.so)", nameFolder);
  }
  if (!extensions.some((path) => contains(path, ASAN_CALL))) {
    throw buildFailed(
      folder,
      "its build did not use CFLAGS and LDFLAGS, or reused objects of an earlier build",
      "remove the objects of earlier builds, and let the build take these variables",
    );
  }
  return output;
}

interface BuildStep {
  readonly words: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  readonly source: string;
  /** As the user named it. */
  readonly folder: string;
  readonly until: AbortSignal;
}

async function runBuild({ words, environment, source, folder, until }: BuildStep): Promise<void> {
  const group = startGroup({
    command: words,
    environment,
    until,
    cwd: source,
    endsDaemons: false,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [group.child.stdout, group.child.stderr]) {
    stream?.on("data", (piece: Buffer) => {
      output = (output + piece.toString("utf8")).slice(0, 1 << 20);
    });
  }
  const { exitCode, signal, startFailure } = await group.end;
  if (until.aborted) {
    throw runInterrupted();
  }
  if (exitCode !== 0) {
    writeFileSync(logOf(source), output);
    throw buildFailed(
      folder,
      startFailure ?? firstError(output) ?? `it ended with ${signal ?? `exit code ${exitCode}`}`,
      nextAfter(output, words, source),
    );
  }
}

/** Where the output of a failed build is kept. */
function logOf(source: string): string {
  return join(source, "build", `${BUILD_NAME}.log`);
}

/** Packages of build backends whose names differ from their modules'. */
const PACKAGES: Readonly<Record<string, string>> = {
  mesonpy: "meson-python",
  scikit_build_core: "scikit-build-core",
  hatchling: "hatchling",
};

/** The remedy for a build that failed. */
function nextAfter(output: string, words: readonly string[], source: string): string {
  const [python = ""] = words;
  if (/No module named '?pip\b/.test(output)) {
    return `install it: ${python} -m ensurepip`;
  }
  const required = /No matching distribution found for (\S+)/.exec(output)?.[1];
  if (required !== undefined) {
    return `its pyproject.toml requires it; install it: ${python} -m pip install ${shellWord(required)}`;
  }
  const isOffline = /No matching distribution|Could not find a version|Connection|resolve/.test(
    output,
  );
  const missing = /No module named '?(\w+)/.exec(output)?.[1];
  if (isOffline || missing !== undefined) {
    const [module = ""] = isOffline ? backendOf(source).split(".") : [missing];
    return `install it: ${python} -m pip install ${PACKAGES[module] ?? module}`;
  }
  return `the whole output is in ${logOf(source)}`;
}

/** Lines in which pip only reports that the build failed, or gives advice. */
const OF_PIP = /^(?:note|hint|\[notice\]):?|^(?:error: )?(?:subprocess-exited|metadata-generation)/;

/** "faulty.c:7:5: error: unknown type name", or the last line that is not pip's advice. */
function firstError(output: string): string | undefined {
  const lines = output
    .split("\n")
    .map((line) => line.replace(/^[\s|╰─>]+/, ""))
    .filter((line) => line !== "" && !OF_PIP.test(line));
  return (
    lines.find((line) => /^[^\s:]+:\d+(?::\d+)?: (?:fatal )?error:/.test(line)) ??
    lines.find((line) =>
      /\b(?:No matching distribution|No module named|Cannot import)/.test(line),
    ) ??
    lines.find((line) => /(?:^|[\s:])(?:fatal )?error:/i.test(line)) ??
    lines.at(-1)
  );
}
