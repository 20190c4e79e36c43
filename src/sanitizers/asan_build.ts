/** `tidemark asan --build EXT_DIR`: builds an extension with AddressSanitizer and UndefinedBehaviorSanitizer. */

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { interpreterOf, startGroup } from "../inspect/index.js";
import { fileNotFound } from "../model/errors/errors.js";
import { buildFailed, runInterrupted, toolMissing } from "../model/errors/tool_errors.js";
import { findRuntime } from "./tools.js";

/** Unoptimised: a compiler removes some errors together with the code that makes them. Address covers object-size. */
const FLAGS =
  "-g -O0 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize=object-size";

export interface BuildRequest {
  readonly folder: string;
  /** Of the Python to build for; its first word decides. */
  readonly command: readonly string[];
  readonly until: AbortSignal;
}

/** How the folder is built: by its own set-up, as a package, or each source with a PyInit_ by itself. */
type Way = "setup.py" | "pyproject.toml" | "sources";

/**
 * Returns the folder to put in front of PYTHONPATH: EXT_DIR/build/tidemark-asan, which is replaced. Throws TM-E003,
 * TM-E090 without a compiler, TM-E092 with the compiler's first error, TM-E093 after an interrupt.
 */
export async function buildForAsan({ folder, command, until }: BuildRequest): Promise<string> {
  const source = resolve(folder);
  if (!statSync(source, { throwIfNoEntry: false })?.isDirectory()) {
    throw fileNotFound(folder, "folder");
  }
  const { compiler } = findRuntime();
  if (compiler === null) {
    throw toolMissing("a C compiler", "sudo apt install gcc");
  }
  const python = interpreterOf(command) ?? interpreterOf(["python3"]);
  if (python === null) {
    throw buildFailed(
      folder,
      "no Python to build for",
      "name the program: asan --build DIR -- python app.py",
    );
  }
  const way = wayOf(source, folder);
  const output = join(source, "build", "tidemark-asan");
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  for (const words of commandsFor(way, { source, output, python: python.path, compiler })) {
    const environment = {
      ...process.env,
      CC: compiler,
      CFLAGS: `${process.env.CFLAGS ?? ""} ${FLAGS}`.trim(),
      CXXFLAGS: `${process.env.CXXFLAGS ?? ""} ${FLAGS}`.trim(),
      LDFLAGS: `${process.env.LDFLAGS ?? ""} -fsanitize=address,undefined`.trim(),
    };
    await runBuild({ words, environment, source, until, folder });
  }
  return output;
}

function wayOf(source: string, shown: string): Way {
  if (existsSync(join(source, "setup.py"))) {
    return "setup.py";
  }
  if (existsSync(join(source, "pyproject.toml"))) {
    return "pyproject.toml";
  }
  if (modulesIn(source).length > 0) {
    return "sources";
  }
  throw buildFailed(
    shown,
    "it has no setup.py, no pyproject.toml and no C source with a PyInit_ function",
    "name the folder of the extension's sources",
  );
}

/** Sources that define an extension module. */
function modulesIn(source: string): { file: string; module: string }[] {
  return readdirSync(source)
    .filter((name) => /\.(?:c|cc|cpp|cxx)$/.test(name))
    .flatMap((name) => {
      const file = join(source, name);
      const module = /\bPyInit_(\w+)\s*\(/.exec(readFileSync(file, "utf8"))?.[1];
      return module === undefined ? [] : [{ file, module }];
    });
}

interface Places {
  readonly source: string;
  readonly output: string;
  readonly python: string;
  readonly compiler: string;
}

function commandsFor(way: Way, { source, output, python, compiler }: Places): string[][] {
  if (way === "setup.py") {
    const temporary = join(source, "build", "tidemark-asan-objects");
    const folders = ["--build-lib", output, "--build-temp", temporary];
    return [
      [
        python,
        "setup.py",
        "--quiet",
        "build",
        "--build-base",
        temporary,
        "build_ext",
        "--force",
        ...folders,
      ],
    ];
  }
  if (way === "pyproject.toml") {
    const pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir"];
    return [[python, ...pip, "--no-build-isolation", "--target", output, source]];
  }
  const asked = spawnSync(
    python,
    [
      "-c",
      "import sysconfig as s; print(s.get_path('include')); print(s.get_config_var('EXT_SUFFIX'))",
    ],
    { encoding: "utf8" },
  );
  const [include = "", suffix = ".so"] = asked.stdout.split("\n");
  return modulesIn(source).map(({ file, module }) => [
    ...[compiler, ...FLAGS.split(" "), "-shared", "-fPIC", `-I${include}`, file],
    ...["-o", join(output, module + suffix), ...(/\.c$/.test(file) ? [] : ["-lstdc++"])],
  ]);
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
    const missing = /No module named '?(setuptools|pip)\b/.exec(output)?.[1];
    const next =
      missing === undefined
        ? `to see all of it: ${basename(words[0] ?? "")} ${words.slice(1).join(" ")}`
        : `install it: ${words[0]} -m ${missing === "pip" ? "ensurepip" : `pip install ${missing}`}`;
    throw buildFailed(
      folder,
      startFailure ?? firstError(output) ?? `it ended with ${signal ?? `exit code ${exitCode}`}`,
      next,
    );
  }
}

/** "faulty.c:7:5: error: unknown type name", or the last line. */
function firstError(output: string): string | undefined {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  return lines.find((line) => /(?:^|[\s:])(?:fatal )?error:/i.test(line)) ?? lines.at(-1);
}
