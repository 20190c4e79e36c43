/** What the readers of Valgrind's XML and of the sanitizers' text have in common. */
import type { Bytes, Pid } from "../../model/base/units.js";

export interface NativeFrame {
  /** Instruction pointer as the tool prints it. */
  readonly address: string;
  readonly function: string;
  /** Source file; "" if there is no debug information. */
  readonly file: string;
  readonly line: number;
  /** Path of the program or library. */
  readonly object: string;
}

/** One error or leak as a tool reports it. Stacks are leaf first. */
export interface Report {
  readonly isLeak: boolean;
  readonly kind: string;
  readonly message: string;
  readonly pid: Pid;
  /** Valgrind's number of the thread; 1 is the main thread, 0 unknown. */
  readonly thread: number;
  readonly stack: readonly NativeFrame[];
  readonly freed: readonly NativeFrame[];
  /** The origin of the block or of the uninitialised value. */
  readonly allocated: readonly NativeFrame[];
  readonly bytes: Bytes;
  readonly blocks: number;
  /** Offset in bytes of the report in the tool's file. */
  readonly offset: number;
}

/** The reports of one process. */
export interface ReportFile {
  readonly pid: Pid;
  readonly reports: readonly Report[];
  /** Times that each report occurred, by its index. */
  readonly counts: readonly number[];
  /** Errors that Valgrind left out, by the name of the entry in a suppression file. */
  readonly suppressed?: ReadonlyMap<string, number>;
  /** The damage of the file, in one sentence; null if there is none. */
  readonly damage: string | null;
}

/** So many frames of a stack distinguish reports. */
export const SIGNATURE_FRAMES = 12;

/** Equal for reports that differ only in addresses. */
export function signatureOf({ kind, isLeak, stack }: Report): string {
  const frames = stack
    .filter(({ object, function: name }) => object !== "" || name !== "")
    .slice(0, SIGNATURE_FRAMES)
    .map((frame) => `${frame.function}@${frame.object.replace(/^.*\//, "")}`);
  return [isLeak ? "leak" : "error", kind, ...frames].join("|");
}

/** Without the frames in which faulthandler's handler ends the process by the signal again. */
export function withoutRaise(frames: readonly NativeFrame[]): readonly NativeFrame[] {
  const first = frames.findIndex(
    ({ function: name }) => !/^(?:__)?(?:pthread_kill\w*|raise|restore_rt)$|^$/.test(name),
  );
  return frames.slice(Math.max(0, first));
}
