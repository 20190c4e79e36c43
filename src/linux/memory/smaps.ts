/**
 * Resident memory by mapping (/proc/PID/smaps; Linux, Documentation/filesystems/proc.rst). Reading walks every
 * page of the process under its memory lock, about 5 ms per GiB, so read it at growing intervals.
 */
import { itemAt } from "../../model/base/columns.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { readNames, readText } from "../process/proc_files.js";
import { parseMaps } from "./maps.js";
import type { Mapping } from "./memory.js";

/** Pages of one mapping, or of all mappings together. */
interface ResidentBytes {
  readonly rssBytes: Bytes;
  /** PSS: each shared page counts by this process's share of it. */
  readonly pssBytes: Bytes;
  /** Shared: also mapped by other processes. Dirty: changed, or without a file to read it from again. */
  readonly sharedCleanBytes: Bytes;
  readonly sharedDirtyBytes: Bytes;
  readonly privateCleanBytes: Bytes;
  readonly privateDirtyBytes: Bytes;
  readonly swapBytes: Bytes;
  /** Transparent huge pages, which are part of RSS. */
  readonly anonymousHugeBytes: Bytes;
  /** Pages of hugetlbfs, which are not part of RSS. */
  readonly hugetlbBytes: Bytes;
}

export interface ResidentMapping extends Mapping, ResidentBytes {}

/** Ascending; null if the process has ended or is not readable. */
export function readSmaps(pid: Pid): ResidentMapping[] | null {
  // If the main thread has ended and others run, only their files have contents.
  const places = [`/proc/${pid}`].concat(
    (readNames(`/proc/${pid}/task`) ?? []).map((task) => `/proc/${pid}/task/${task}`),
  );
  for (const place of places) {
    const text = readText(`${place}/smaps`);
    if (text !== null && text !== "") {
      return parseSmaps(text);
    }
  }
  return null;
}

/** All mappings together, as summed by the kernel; null as with {@link readSmaps}. */
export function readSmapsTotal(pid: Pid): ResidentBytes | null {
  const text = readText(`/proc/${pid}/smaps_rollup`);
  return text === null || text === "" ? null : parseFigures(text.split("\n"));
}

const HEADER = /^[0-9a-f]+-[0-9a-f]+ /;

function parseSmaps(text: string): ResidentMapping[] {
  const mappings: ResidentMapping[] = [];
  const lines = text.split("\n");
  let header = 0;
  while (header < lines.length) {
    let next = header + 1;
    while (next < lines.length && !HEADER.test(itemAt(lines, next))) {
      next += 1;
    }
    const mapping = parseMaps(itemAt(lines, header))[0];
    if (mapping !== undefined) {
      mappings.push({ ...mapping, ...parseFigures(lines.slice(header + 1, next)) });
    }
    header = next;
  }
  return mappings;
}

function parseFigures(lines: readonly string[]): ResidentBytes {
  const bytes = new Map<string, Bytes>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon > 0 && line.endsWith(" kB")) {
      bytes.set(line.slice(0, colon), Number.parseInt(line.slice(colon + 1), 10) * 1024);
    }
  }
  const of = (name: string) => bytes.get(name) ?? 0;
  return {
    rssBytes: of("Rss"),
    pssBytes: of("Pss"),
    sharedCleanBytes: of("Shared_Clean"),
    sharedDirtyBytes: of("Shared_Dirty"),
    privateCleanBytes: of("Private_Clean"),
    privateDirtyBytes: of("Private_Dirty"),
    swapBytes: of("Swap"),
    anonymousHugeBytes: of("AnonHugePages"),
    hugetlbBytes: of("Shared_Hugetlb") + of("Private_Hugetlb"),
  };
}
