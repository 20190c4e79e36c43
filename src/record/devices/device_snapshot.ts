/**
 * Takes a snapshot of a running program's torch allocator: the program writes it itself, with torch's own
 * function, into a file that is created here.
 *
 *   a file in a folder of the program ── its path ──> the thread opens it and unlinks it
 *         read here, by the open file    <── "written", or why not ── torch writes
 *
 * It is read through its descriptor, so no path from the program is opened. Once unlinked, it disappears when
 * both sides have closed it, even if one is killed.
 */
import { closeSync } from "node:fs";
import { noFolder, ProgramFolder } from "../../cpython/entry/program_folder.js";
import type { RemoteExecOptions } from "../../cpython/entry/remote_exec.js";
import { type FrameworkFigures, parseFigures } from "../../gpu/devices/device_figures.js";
import type { Millis, Pid } from "../../model/base/units.js";
import { firstMessage, openDeviceLine } from "./device_line.js";

/** A history of a few million entries becomes a file of a gigabyte, pickled by the program. */
const WRITE_MS: Millis = 10 * 60_000;
const PICKLE = ".pickle";

interface DeviceSnapshot<Answer> {
  readonly frameworks: readonly FrameworkFigures[];
  /** The result of `read`; null if there is no snapshot. */
  readonly answer: Answer | null;
  /** Why there is none; empty if torch has not used a device yet. */
  readonly refused: string;
}

/**
 * `read` gets the path of the snapshot, which exists while it runs. Throws TidemarkError if the program cannot
 * be queried, and the errors of `read`.
 */
export async function readDeviceSnapshot<Answer>(
  pid: Pid,
  exec: RemoteExecOptions,
  read: (path: string) => Promise<Answer>,
): Promise<DeviceSnapshot<Answer>> {
  const file = fileIn(pid);
  try {
    const line = await openDeviceLine(pid, { snapshot: file.address }, exec);
    try {
      const { figures, written, refused } = await firstMessage(pid, line, {
        key: "written",
        waitMs: WRITE_MS,
        until: exec.signal,
      });
      return {
        frameworks: parseFigures(figures),
        answer: written === true ? await read(file.path) : null,
        refused: typeof refused === "string" ? refused : "",
      };
    } finally {
      line.close();
    }
  } finally {
    file.close();
  }
}

interface OpenFile {
  /** Path as seen by the program. */
  readonly address: string;
  /** Path as seen by this process. */
  readonly path: string;
  close(): void;
}

/** An empty file owned by the program's user, in the first of its folders that is writable. */
function fileIn(pid: Pid): OpenFile {
  for (const folder of ProgramFolder.of(pid)) {
    try {
      const file = folder.create(PICKLE, "");
      return {
        address: folder.there(PICKLE),
        path: `/proc/self/fd/${file}`,
        close: () => {
          folder.remove(PICKLE);
          closeSync(file);
          folder.close();
        },
      };
    } catch {
      folder.close();
    }
  }
  throw noFolder(pid);
}
