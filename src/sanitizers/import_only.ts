/**
 * The reports that Python and its libraries cause by themselves, from a run that only imports the extensions in
 * question. They are kept in the user's cache for each build of Python, set of modules and version of Valgrind.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import type { StartedPython } from "../inspect/index.js";
import type { Millis } from "../model/base/units.js";
import { readXmlFolder, valgrindWords } from "./memcheck_run.js";
import { signatureOf } from "./reports/report.js";
import { runTool, watchedEnvironment, withReportFolder } from "./tool_run.js";

/** Raised when the signatures, or the allocations in such a run, change. */
const CACHE_FORMAT = "3";

export interface ImportOnly {
  readonly python: StartedPython;
  /** Dotted names of extensions. */
  readonly modules: readonly string[];
  readonly toolVersion: string;
  readonly until: AbortSignal;
  readonly note: (line: string) => void;
  readonly onElapsed: (elapsedMs: Millis) => void;
}

/** Signatures of the reports; none after an interrupt, unless an earlier run kept them. */
export async function importOnlySignatures(request: ImportOnly): Promise<Set<string>> {
  const { python, modules, toolVersion, until, note, onElapsed } = request;
  const code = [...modules]
    .sort()
    .map((name) => `try:\n import ${name}\nexcept BaseException: pass`)
    .join("\n");
  const ingredients = [CACHE_FORMAT, python.executable, python.executableMs, toolVersion, code];
  const cache = cachePath(ingredients.join("\0"));
  const kept = readCache(cache);
  if (kept !== null || until.aborted) {
    return kept ?? new Set();
  }
  note(
    `${modules.length === 0 ? "running Python alone" : `importing ${modules.join(", ")} alone`} under Valgrind, to leave out the reports that this causes; the result is cached`,
  );
  const signatures = await withReportFolder(async (folder) => {
    const words = valgrindWords(folder);
    const environment = watchedEnvironment("memcheck", folder, {}); // allocates as in the program's run
    const command = [...words, python.path, "-c", code === "" ? "pass" : code];
    await runTool({ command, environment, isShown: false, until, onElapsed });
    const files = await readXmlFolder(folder, async () => {});
    return new Set(files.flatMap(({ reports }) => reports.map((report) => signatureOf(report))));
  });
  if (!until.aborted) {
    writeCache(cache, signatures);
  }
  return signatures;
}

function cachePath(ingredients: string): string {
  const folder = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  const name = createHash("sha256").update(ingredients).digest("hex").slice(0, 24);
  return join(folder, "tidemark", "memcheck", `${name}.json`);
}

function readCache(path: string): Set<string> | null {
  try {
    const kept: unknown = JSON.parse(readFileSync(path, "utf8"));
    return Array.isArray(kept) && kept.every((entry) => typeof entry === "string")
      ? new Set(kept)
      : null;
  } catch {
    return null;
  }
}

function writeCache(path: string, signatures: ReadonlySet<string>): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}.${process.pid}`, JSON.stringify([...signatures]));
    renameSync(`${path}.${process.pid}`, path);
  } catch {
    // Without a cache the next run imports again.
  }
}
