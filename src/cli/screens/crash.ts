/** What to run next after a program that was ended by a memory fault. */
import { constants } from "node:os";
import { canCompileForAsan, hasValgrind } from "../../sanitizers/index.js";
import { shellWord } from "../text/command_words.js";

/** A segmentation fault or a bus error. */
export function isMemoryFault(signal: number | null): boolean {
  return signal === constants.signals.SIGSEGV || signal === constants.signals.SIGBUS;
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
