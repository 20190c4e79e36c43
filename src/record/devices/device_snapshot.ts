/**
 * A snapshot of a running program's torch allocator: the program writes it itself, by torch's own function,
 * into a file that is made for it here.
 *
 *   a file in a folder of the program's ── its path, by the line ──> the thread opens it, and takes its name away
 *         read here, by the open file    <── "written", or why not ── torch writes
 *
 * It is read through its descriptor: nothing that the program says, or puts in its place, is opened. Without a name
 * it is gone when both have closed it, whichever is killed meanwhile.
 */
import { closeSync, constants, openSync, rmSync } from "node:fs";
import { noFolder, ProgramFolder } from "../../cpython/entry/program_folder.js";
import type { RemoteExecOptions } from "../../cpython/entry/remote_exec.js";
import { type FrameworkFigures, parseFigures } from "../../gpu/devices/device_figures.js";
import type { Millis, Pid } from "../../model/base/units.js";
import { firstMessage, openDeviceLine } from "./device_line.js";

/** A history of a few million entries is a file of a gigabyte, pickled by the program. */
const WRITE_MS: Millis = 10 * 60_000;
const PICKLE = ".pickle";

interface DeviceSnapshot<Answer> {
  readonly frameworks: readonly FrameworkFigures[];
  /** What `read` made of it; null where there is none. */
  readonly answer: Answer | null;
  /** Why there is none; empty where torch has not begun to use a device. */
  readonly refused: string;
}

/** `read` gets the path of the snapshot, which is there as long as it runs. Throws TidemarkError where the program
 * cannot be asked, and what `read` throws. */
export async function readDeviceSnapshot<Answer>(
  pid: Pid,
  exec: RemoteExecOptions,
  read: (path: string) => Promise<Answer>,
): Promise<DeviceSnapshot<Answer>> {
  const file = fileIn(pid);
  try {
    const line = await openDeviceLine(pid, { snapshot: file.address }, exec);
    try {
      const { look, written, refused } = await firstMessage(pid, line, {
        key: "written",
        waitMs: WRITE_MS,
        until: exec.signal,
      });
      return {
        frameworks: parseFigures(look),
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
  /** As the program names it. */
  readonly address: string;
  /** As it is read here. */
  readonly path: string;
  close(): void;
}

/** An empty file of the program's user in the first of its folders that takes one. */
function fileIn(pid: Pid): OpenFile {
  for (const folder of ProgramFolder.of(pid)) {
    const made = folder.here(PICKLE);
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    let file: number;
    try {
      file = openSync(made, flags, 0o600);
    } catch {
      folder.close();
      continue;
    }
    try {
      folder.handOver(PICKLE);
      return {
        address: folder.there(PICKLE),
        path: `/proc/self/fd/${file}`,
        close: () => {
          rmSync(made, { force: true });
          closeSync(file);
          folder.close();
        },
      };
    } catch {
      rmSync(made, { force: true });
      closeSync(file);
      folder.close();
    }
  }
  throw noFolder(pid);
}
