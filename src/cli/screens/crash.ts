/** What to run next after a program that was ended by a fault of native code. */
import { constants } from "node:os";
import { shellWord } from "../../model/base/shell_word.js";
import { canCompileForAsan, hasValgrind } from "../../sanitizers/index.js";

const { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT } = constants.signals;

/** A fault of native code; the C library calls abort() when it finds that the heap is damaged. */
export function isNativeFault(signal: number | null): boolean {
  return signal !== null && [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT].includes(signal);
}

/** One sentence with the command: Valgrind needs no rebuild; without it, the compiler's sanitizer. */
export function crashNotes(command: readonly string[]): string[] {
  const words = command.map(shellWord).join(" ");
  const build = `tidemark asan --build EXT_DIR -- ${words}`;
  const check = `tidemark memcheck -- ${words}`;
  if (hasValgrind()) {
    return [
      `the program crashed in native code; next: ${check} (finds the first bad access, needs no rebuild)`,
    ];
  }
  return canCompileForAsan()
    ? [
        `the program crashed in native code; next: ${build}, with the folder of the extension's source`,
      ]
    : [`the program crashed in native code; next: sudo apt install valgrind, then ${check}`];
}
