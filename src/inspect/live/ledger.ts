/** The document of `tidemark ledger`: the ledger of a process or of a core file. */

import { readCoreLedger, readLedger } from "../../ledger/index.js";
import {
  descendantsOf,
  findCgroup,
  openCoreFile,
  readCommand,
  readInterpreter,
  readLimiting,
  readPageCache,
  readSmapsTotal,
  readStat,
  startTimeMs,
} from "../../linux/index.js";
import { formatBytes, formatCount } from "../../model/base/numbers.js";
import type { Pid } from "../../model/base/units.js";
import type {
  CoreLedgerJson,
  LedgerJson,
  LedgerPartJson,
} from "../../model/documents/ledger_document.js";
import type { LedgerLimit, LedgerPart } from "../../model/profile/ledger.js";
import { gapTexts } from "./core_gaps.js";

/** Throws TM-E020 (gone) or TM-E021 (not permitted). */
export function ledgerDocument(
  pid: Pid,
  depth: "cheap" | "full",
  withChildren: boolean,
): LedgerJson {
  const { parts, limits, malloc, python, pid: _pid, ...figures } = readLedger(pid, depth);
  return {
    schema: "tidemark.ledger/1",
    target: {
      pid,
      command: readCommand(pid) ?? [],
      python: readInterpreter(pid)?.version ?? "",
      startedMs: startTimeMs(readStat(pid)?.startTicks ?? 0),
    },
    ...figures,
    paused: false,
    parts: parts.map(partOf),
    unexplainedBytes: unexplained(parts),
    ...(malloc === null ? {} : { malloc }),
    ...(python === null ? {} : { pymalloc: python }),
    ...cgroupOf(pid),
    children: withChildren ? childrenOf(pid) : [],
    limits: limits.map((limit) => limitText(limit, false)),
  };
}

/** Throws TM-E003, TM-E004 (no such file, not readable), TM-E005 (damaged), TM-E007 (not a core file). */
export function coreLedgerDocument(file: string): CoreLedgerJson {
  const core = openCoreFile(file);
  try {
    const { parts, limits, malloc, pymalloc, pid, python, ...figures } = readCoreLedger(core);
    return {
      schema: "tidemark.coreledger/1",
      target: { pid, command: [core.name], python, startedMs: 0 },
      file,
      ...figures,
      parts: parts.map(partOf),
      unexplainedBytes: unexplained(parts),
      ...(malloc === null ? {} : { malloc }),
      ...(pymalloc === null ? {} : { pymalloc }),
      limits: [...gapTexts(core), ...limits.map((limit) => limitText(limit, true))],
    };
  } finally {
    core.close();
  }
}

function partOf({
  part,
  bytes,
  cleanBytes,
  dirtyBytes,
  reclaim,
  reclaimBytes,
}: LedgerPart): LedgerPartJson {
  return {
    part,
    bytes,
    ...(cleanBytes + dirtyBytes > 0 ? { cleanBytes, dirtyBytes } : {}),
    reclaim: { by: reclaim, ...(reclaimBytes === null ? {} : { bytes: reclaimBytes }) },
  };
}

function unexplained(parts: readonly LedgerPart[]): number {
  return parts.find(({ part }) => part === "unexplained")?.bytes ?? 0;
}

function cgroupOf(pid: Pid): Pick<LedgerJson, "cgroup"> {
  const place = findCgroup(pid);
  const group = place === null ? null : readLimiting(place);
  if (group === null) {
    return {};
  }
  const { limitBytes, highBytes, usageBytes, directory } = group;
  return {
    cgroup: { limitBytes, highBytes, usageBytes, pageCacheBytes: readPageCache(directory) },
  };
}

/** All descendants by RSS, largest first, without those that have ended or are not readable. */
function childrenOf(pid: Pid): LedgerJson["children"] {
  const rows = descendantsOf(pid)
    .slice(1)
    .flatMap((child) => {
      const sums = readSmapsTotal(child);
      const stat = readStat(child);
      return sums === null || stat === null
        ? []
        : [
            {
              pid: child,
              parentPid: stat.parentPid,
              command: readCommand(child) ?? [],
              rssBytes: sums.rssBytes,
              pssBytes: sums.pssBytes,
              privateDirtyBytes: sums.privateDirtyBytes,
              sharedBytes: sums.sharedCleanBytes + sums.sharedDirtyBytes,
            },
          ];
    });
  return rows.sort((a, b) => b.rssBytes - a.rssBytes);
}

function limitText({ kind, name, count, bytes }: LedgerLimit, core: boolean): string {
  switch (kind) {
    case "python-not-found":
      return name === "free-threaded"
        ? "a free-threaded Python stores its objects in mimalloc: they are in anon.other"
        : `no arenas of Python's own allocator were found (PYTHONMALLOC=malloc, ${core ? "data that are not in the file" : "or an unknown build"}): its objects are in malloc.used or anon.other`;
    case "glibc-not-found":
      return "no glibc heap was found: the memory of the program's allocator is in anon.other";
    case "glibc-torn":
      if (core) {
        return bytes > 0
          ? `${formatBytes(bytes)} of malloc's heap are missing from the file or damaged: the part in the file counts as used`
          : "parts of malloc's heap are missing from the file or damaged";
      }
      return bytes > 0
        ? `${formatBytes(bytes)} of malloc's heap changed while being read, or is swapped out: it counts as used`
        : "parts of malloc's heap changed while being read, or were not found";
    case "glibc-cut":
      return "there are more free chunks than the quick mode follows: malloc.free is a lower bound";
    case "mmapped-short":
      return `${formatCount(count)} malloc blocks with their own mappings were not found (${formatBytes(bytes)}, resident or not): they are in anon.other`;
    case "pools-unread":
      return `${formatCount(count)} pools of Python's allocator were not readable: ${core ? "their part in the file counts" : "they count"} as used`;
    case "allocator":
      return `${name} is loaded: its memory, used and free, is in anon.other`;
  }
}
