/** Rows of `ps` and `top`: a process as in its document. */
import { type PythonProcess, userName } from "../../linux/index.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import type { PsJson } from "../../model/documents/documents.js";
import { processKey } from "./previous_sizes.js";

export type ProcessRow = PsJson["processes"][number];

/**
 * @param before RSS by {@link processKey} at an earlier reading; null if there was none
 * @param device bytes by pid; null if no driver answers
 * @internal
 */
export function processRow(
  process: PythonProcess,
  before: ReadonlyMap<string, Bytes> | null,
  device: ReadonlyMap<Pid, Bytes> | null,
): ProcessRow {
  const { version, ...build } = process.interpreter;
  const earlier = before?.get(keyOf(process));
  return {
    pid: process.pid,
    parentPid: process.parentPid,
    user: userName(process.uid),
    python: version,
    build,
    command: [...process.command],
    container: process.container,
    rssBytes: process.rssBytes,
    pssBytes: process.pssBytes,
    ussBytes: process.ussBytes,
    growthBytes: earlier === undefined ? 0 : process.rssBytes - earlier,
    threads: process.threads,
    children: process.children,
    ...(process.endedChildren === 0 ? {} : { endedChildren: process.endedChildren }),
    ...(device === null ? {} : { gpuBytes: device.get(process.pid) ?? 0 }),
    attach: process.attach,
  };
}

/** @internal */
export function keyOf(process: PythonProcess): string {
  return processKey(process.pid, process.startTicks);
}

/** The text that `--filter` searches. */
export function filterText(row: ProcessRow): string {
  return `${row.pid} ${row.user} ${row.container} ${row.command.join(" ")}`;
}
