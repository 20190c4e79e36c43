/** Whether the end of a program is a crash, in a sentence. */
import { constants } from "node:os";
import type { Pid } from "../../model/base/units.js";
import type { ProcessExit } from "./process_events.js";

/** Signals by which a process ends because of its own error. */
const ERRORS: Readonly<Record<string, string>> = {
  SIGSEGV: "it used an address that is not mapped",
  SIGBUS: "it used an address without memory behind it, as in a truncated file",
  SIGABRT: "it called abort(), as after a failed check in native code",
  SIGILL: "an invalid instruction",
  SIGFPE: "an invalid calculation",
  SIGSYS: "a system call that is not allowed",
  SIGTRAP: "a breakpoint or a failed check",
};
/** Signals by which others end a process as they intend. */
const REQUESTS: ReadonlySet<string> = new Set([
  ...["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGPIPE", "SIGALRM", "SIGUSR1", "SIGUSR2"],
]);

/**
 * null if it is not a crash: exit code 0, or a signal that asks for an end. An end that nobody reported (`exit` is null) is
 * none either: a service without a handler that systemctl stops looks the same as one that was killed.
 */
export function crashSentence(pid: Pid, exit: ProcessExit | null): string | null {
  if (exit === null) {
    return null;
  }
  if (exit.signal === null) {
    return exit.exitCode === 0
      ? null
      : `Process ${pid} ended with exit code ${exit.exitCode}${exit.exitCode === 1 ? ": as after an exception that nothing caught, or sys.exit(1)" : "; the cause is not known"}`;
  }
  const name = nameOf(exit.signal);
  if (REQUESTS.has(name)) {
    return null;
  }
  const what = ERRORS[name];
  return what === undefined
    ? `Process ${pid} was ended by ${name}; who sent it is not known`
    : `Process ${pid} crashed with ${name}: ${what}`;
}

function nameOf(signal: number): string {
  const known = Object.entries(constants.signals).find(([, number]) => number === signal);
  return known?.[0] ?? `signal ${signal}`;
}
