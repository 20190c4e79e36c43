/** The source text of a report page, so that it can show bytes beside the lines. */
import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync } from "node:fs";
import { hostname } from "node:os";
import { isAbsolute, resolve } from "node:path";
import { uint32At } from "../../model/base/columns.js";
import type { Bytes, StackId } from "../../model/base/units.js";
import { isOwn } from "../../model/documents/own_code.js";
import type { ReportSource } from "../../model/documents/report_document.js";
import type { ProfileSnapshot, ProfileTables, SiteTable } from "../../model/profile/profile.js";
import type { RecordingMeta } from "../../recording/types.js";

/** Limit on the text, which enlarges the page; a program's own code is rarely larger. */
const MOST_FILES = 40;
const LARGEST_FILE: Bytes = 512 << 10;
const MOST_TEXT: Bytes = 2 << 20;

/**
 * The files whose lines allocated most, if the recording was made here. Only Python files: a recording from elsewhere
 * must not put other files of this machine into a page.
 */
export function sourcesOf(
  meta: RecordingMeta,
  tables: ProfileTables,
  snapshots: readonly ProfileSnapshot[],
): ReportSource[] {
  const { startedMs } = meta;
  if (!isOfThisHost(meta)) {
    return [];
  }
  const sources: ReportSource[] = [];
  let left = MOST_TEXT;
  for (const file of filesBySize(tables, snapshots)) {
    const path = sourcePath(meta, file);
    const read = isAbsolute(path) ? readSource(path, Math.min(LARGEST_FILE, left)) : undefined;
    if (read !== undefined) {
      left -= read.text.length;
      sources.push({ file, text: read.text, changed: read.changedMs > startedMs });
    }
    if (sources.length === MOST_FILES) {
      break;
    }
  }
  return sources;
}

/** The sentence for a page whose recording names Python files of which none could be read; undefined if it names none. */
export function noSourceText(
  meta: RecordingMeta,
  tables: ProfileTables,
  snapshots: readonly ProfileSnapshot[],
): string | undefined {
  const [largest] = filesBySize(tables, snapshots);
  if (largest === undefined) {
    return undefined;
  }
  const why = isOfThisHost(meta)
    ? `${sourcePath(meta, largest)} is not a readable text file on this machine`
    : `the program ran on the host ${meta.host}`;
  const next =
    meta.imported !== undefined && !isAbsolute(largest)
      ? ` Run tidemark import in the folder that ${largest} is relative to.`
      : "";
  return `The page has no source text: ${why}.${next}`;
}

/** Files of other tools do not name their host. */
function isOfThisHost({ host }: RecordingMeta): boolean {
  return host === "" || host === hostname();
}

/**
 * Where a file of a stack is on this machine: the tools whose files are imported record the path that the program was
 * started by, which may be relative.
 */
export function sourcePath({ imported }: Pick<RecordingMeta, "imported">, file: string): string {
  return imported?.folder === undefined || file === "" ? file : resolve(imported.folder, file);
}

/** Python files in the stacks, by the bytes of the stacks that they are in. */
function filesBySize(tables: ProfileTables, snapshots: readonly ProfileSnapshot[]): string[] {
  const { stacks, frames, strings } = tables;
  const totals = new Map<number, number>();
  for (const { sites, copies } of snapshots.slice(-1)) {
    const all = [
      ...rowsOf(sites, (row) => Math.max(sites.liveBytes[row] ?? 0, sites.peakBytes[row] ?? 0)),
      ...rowsOf(copies, () => 0), // a file that only copies comes last
    ];
    for (const { stack, bytes } of all) {
      const seen = new Set<number>();
      for (let at = stack; at !== 0; at = uint32At(stacks.parent, at)) {
        const file = uint32At(frames.file, uint32At(stacks.frame, at));
        if (!seen.has(file)) {
          seen.add(file);
          totals.set(file, (totals.get(file) ?? 0) + bytes);
        }
      }
    }
  }
  return [...totals]
    .sort(([, a], [, b]) => b - a)
    .map(([file]) => strings[file] ?? "")
    .filter(
      (file) => /\.pyw?$/.test(file) && isOwn({ function: "", file, line: 0, kind: "python" }),
    );
}

function rowsOf(
  { length, stack }: SiteTable,
  bytesOf: (row: number) => Bytes,
): { readonly stack: StackId; readonly bytes: Bytes }[] {
  return Array.from({ length }, (_, row) => ({ stack: uint32At(stack, row), bytes: bytesOf(row) }));
}

/** Kinds of files that contain source text. */
const SOURCE = /\.(?:pyw?|pyx|pxd|pxi|c|cc|cpp|cxx|cu|h|hpp|rs)$/;

/**
 * undefined if it is not a file of source text, not readable, or too large. A recording may name any path, also that of a
 * link: the name that counts is that of the file which was opened.
 */
export function readSource(
  path: string,
  most: Bytes,
): { readonly text: string; readonly changedMs: number } | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(descriptor);
    const name = readlinkSync(`/proc/self/fd/${descriptor}`);
    if (!stats.isFile() || stats.size > most || !SOURCE.test(name)) {
      return undefined;
    }
    const bytes = Buffer.alloc(stats.size);
    const text = bytes
      .subarray(0, readSync(descriptor, bytes, 0, bytes.length, 0))
      .toString("utf8");
    return text.includes("\0") ? undefined : { text, changedMs: stats.mtimeMs };
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) {
      closeSync(descriptor);
    }
  }
}
