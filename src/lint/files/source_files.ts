/** The Python files below the paths that a user named. */
import { type Dirent, readdirSync, realpathSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { isMatched, type PathPatterns } from "./globs.js";

/** Folders that hold no source of the user's own. */
const SKIPPED_FOLDERS = new Set([
  ...[
    ".git",
    ".hg",
    ".svn",
    ".tox",
    ".nox",
    ".venv",
    "venv",
    ".eggs",
    ".mypy_cache",
    ".ruff_cache",
  ],
  ...[".pytest_cache", ".ipynb_checkpoints", "__pycache__", "__pypackages__", "node_modules"],
  ...["site-packages"],
]);

export interface SourceFile {
  /** The path in findings: relative to the working folder, unless it is outside of it. */
  readonly path: string;
  /** The user named the file itself, not a folder above it. */
  readonly isNamed: boolean;
}

export interface FoundFiles {
  readonly files: readonly SourceFile[];
  /** Paths that could not be read: path and reason. */
  readonly unreadable: readonly { path: string; reason: string; isNamed: boolean }[];
  /** Number of paths that the user named and a pattern leaves out. */
  readonly excluded: number;
}

/**
 * Files that end in .py or .pyw, in the order of their names; named files whatever their names are. `exclude` leaves out
 * files in folders; `excludeNamed` also leaves out files that the user named, as the settings do for a pre-commit hook,
 * which names every file of the commit.
 */
export function findSourceFiles(
  paths: readonly string[],
  exclude: readonly PathPatterns[],
  excludeNamed: readonly PathPatterns[] = [],
): FoundFiles {
  const files = new Map<string, SourceFile>();
  const unreadable: FoundFiles["unreadable"][number][] = [];
  const seen = new Set<string>();
  const patterns = [...exclude, ...excludeNamed];
  let excluded = 0;
  const visit = (folder: string): void => {
    let entries: Dirent[];
    try {
      const real = realpathSync(folder);
      if (seen.has(real)) {
        return; // a link that leads back
      }
      seen.add(real);
      entries = readdirSync(folder, { withFileTypes: true });
    } catch (error) {
      unreadable.push({ path: shown(folder), reason: reasonOf(error), isNamed: false });
      return;
    }
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(folder, entry.name);
      const kind = entry.isSymbolicLink() ? kindOf(path) : entry;
      if (isMatched(path, patterns)) {
        continue;
      }
      if (kind?.isDirectory() === true && !SKIPPED_FOLDERS.has(entry.name)) {
        visit(path);
      } else if (kind?.isFile() === true && /\.pyw?$/.test(entry.name)) {
        files.set(shown(path), { path: shown(path), isNamed: false });
      }
    }
  };
  for (const path of paths) {
    try {
      const status = statSync(path);
      if (status.isDirectory()) {
        visit(path);
      } else if (!status.isFile()) {
        unreadable.push({ path: shown(path), reason: "is not a regular file", isNamed: true });
      } else if (isMatched(path, excludeNamed)) {
        excluded++;
      } else {
        files.set(shown(path), { path: shown(path), isNamed: true });
      }
    } catch (error) {
      unreadable.push({ path: shown(path), reason: reasonOf(error), isNamed: true });
    }
  }
  return { files: [...files.values()], unreadable, excluded };
}

/** The target of a link; null if there is none. */
function kindOf(path: string) {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

function shown(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return fromHere === "" ? "." : fromHere.startsWith("..") ? path : fromHere;
}

const REASONS: Record<string, string> = {
  ENOENT: "does not exist",
  EACCES: "may not be read",
  EPERM: "may not be read",
  ELOOP: "is a link in a circle",
  ENAMETOOLONG: "has a name that is too long",
  EISDIR: "is a folder",
};

/** Why a file cannot be read, as the end of a sentence. */
export function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  return REASONS[code] ?? `cannot be read: ${code === "" ? String(error) : code}`;
}
