/** `tidemark gpu PID`. */
import { writeFile } from "node:fs/promises";
import { badUsage } from "../../model/errors.js";
import type { GpuProcessJson } from "../../model/gpu_process_document.js";
import type { Millis, Pid } from "../../model/units.js";
import { lookAtGpuProcess } from "../gpu_process_look.js";
import { requireLinux } from "../installation.js";
import { type CommonOptions, type ListOptions, selectRows } from "../options.js";
import { printJson, printNote, screenOf } from "../output.js";
import { DEFAULT_TENSORS, printGpuProcess, tensorText } from "../screens/gpu_process.js";
import { requireOtherFile, writeWhole } from "../write_whole.js";
import { sayWritten } from "../written.js";

export interface GpuProcessOptions extends CommonOptions, ListOptions {
  readonly output?: string;
}

const WAIT_MS: Millis = 30_000;
/** A heap is copied at 250 ms a GiB; a program that serves may not stand longer. */
const MOST_PAUSE_MS: Millis = 500;

export async function showGpuProcess(pid: Pid, options: GpuProcessOptions): Promise<void> {
  requireLinux();
  const { output } = options;
  if (output !== undefined) {
    requireOtherFile(output, `/proc/${pid}/exe`);
  }
  const { document, profile } = await lookAtGpuProcess({
    pid,
    waitMs: WAIT_MS,
    maxPauseMs: MOST_PAUSE_MS,
    wantsProfile: output !== undefined,
    onWaiting: (doing) => {
      if (options.quiet !== true) printNote(`waiting for process ${pid}: ${doing}`);
    },
  });
  if (output !== undefined) {
    await writeProfile(output, profile, options);
    return;
  }
  if (options.json !== true) {
    printGpuProcess(screenOf(process.stdout), document, options);
    return;
  }
  printJson({ ...document, tensors: chosen(document, options) });
}

function chosen(document: GpuProcessJson, options: ListOptions): GpuProcessJson["tensors"] {
  return document.tensors === null
    ? null
    : selectRows(document.tensors, options, DEFAULT_TENSORS, ({ bytes }) => bytes, tensorText).rows;
}

async function writeProfile(
  output: string,
  profile: Buffer | null,
  options: CommonOptions,
): Promise<void> {
  if (profile === null) {
    throw badUsage(
      "-o of a process writes the device profile that JAX keeps, and this one has none",
      "leave out -o, or dump a snapshot of torch's allocator and name that",
    );
  }
  await writeWhole(output, (path) => writeFile(path, profile));
  sayWritten("pprof", [output], options);
}
