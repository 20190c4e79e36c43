/**
 * Describes a main thread that does not run Python code: since when, and at which native frame. Its registers
 * and stack are copied during another pause, and unwound only if the text is needed.
 */
import {
  copyThreads,
  type HeldThread,
  type Memory,
  StackRoom,
  type ThreadRegisters,
  type ThreadUnwinder,
} from "../../linux/index.js";
import type { Millis, Pid } from "../../model/base/units.js";
import { baseName } from "../../model/profile/frame_text.js";
import type { NativeFrame } from "../../model/profile/native_stack.js";
import { isEvaluator } from "../stacks/native_merge.js";
import { describeMainThread, waitOf } from "./main_thread.js";

const CALLERS_SHOWN = 2;
/** Functions that only enter the kernel. */
const SYSTEM_LIBRARY = /^(?:libc|libpthread|ld-linux-x86-64)[.-]|^\[vdso\]$/;

/** ", at sorts (native.so) called by calls (native.so)": the frames up to the evaluator that called them. */
function describePlace(frames: readonly NativeFrame[]): string {
  const evaluator = frames.findIndex((frame) => isEvaluator(frame.function));
  const called = evaluator < 0 ? frames : frames.slice(0, evaluator);
  const own = called.filter(({ file }) => !SYSTEM_LIBRARY.test(baseName(file)));
  const shown = (own.length > 0 ? own : called).slice(0, CALLERS_SHOWN);
  const places = shown.map((frame) =>
    frame.file === "" ? frame.function : `${frame.function} (${baseName(frame.file)})`,
  );
  return places.length === 0 ? "" : `, at ${places.join(" called by ")}`;
}

export class LateMainThread {
  #thread: HeldThread | null = null;
  /** What it waited in at the moment of the copy; undefined before the first. */
  #wait: string | undefined;
  #room: StackRoom | null = null;

  readonly #pid: Pid;
  readonly #memory: Memory;
  readonly #openUnwinder: ((memory: Memory) => ThreadUnwinder) | undefined;

  constructor(
    pid: Pid,
    memory: Memory,
    openUnwinder: ((memory: Memory) => ThreadUnwinder) | undefined,
  ) {
    this.#pid = pid;
    this.#memory = memory;
    this.#openUnwinder = openUnwinder;
  }

  /** Call this before the process is paused, so that nothing is allocated meanwhile. */
  prepare(): void {
    this.#room = this.#openUnwinder === undefined ? null : new StackRoom();
  }

  /** Call this while the process is paused. */
  async copy(holder: { registers(): Promise<ThreadRegisters[]> }): Promise<void> {
    this.#wait = waitOf(this.#pid, this.#pid, this.#memory);
    if (this.#room !== null) {
      const main = (await holder.registers()).filter(({ tid }) => tid === this.#pid);
      this.#thread = copyThreads(this.#memory, main, this.#room)[0] ?? null;
    }
  }

  /**
   * "its main thread has been running C code for 5 s or more, at dgemm (libblas.so)". `stateBefore`: of
   * {@link describeMainThread}.
   */
  describe(elapsedMs: Millis, stateBefore: string): string {
    const seconds = Math.floor(elapsedMs / 1000);
    const since = seconds === 0 ? "" : ` for ${seconds} s or more`;
    const more = since + describePlace(this.#frames());
    return describeMainThread(this.#pid, this.#memory, more, this.#wait, stateBefore);
  }

  #frames(): readonly NativeFrame[] {
    if (this.#thread === null || this.#openUnwinder === undefined) {
      return [];
    }
    const unwinder = this.#openUnwinder(this.#memory);
    try {
      return unwinder.unwind(this.#thread).frames;
    } finally {
      unwinder.close();
    }
  }
}
