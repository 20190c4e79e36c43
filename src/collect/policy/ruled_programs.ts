import type { ScannedProcess } from "../../linux/index.js";
import type { Policy } from "./policy.js";
import { type Chosen, type Program, programsOf, ruleFor } from "./programs.js";

/** A program, and what the policy applies to it. */
export interface RuledProgram {
  readonly program: Program;
  readonly rule: Chosen;
}

/** The programs of a scan with their rules: the same array as before unless a process or the policy has changed. */
export class RuledPrograms {
  #processes: readonly ScannedProcess[] = [];
  #policy: Policy | null = null;
  #programs: readonly RuledProgram[] = [];

  of(processes: readonly ScannedProcess[], policy: Policy): readonly RuledProgram[] {
    const before = this.#processes;
    const isSame =
      policy === this.#policy &&
      (before === processes ||
        (before.length === processes.length &&
          before.every((process, at) => process === processes[at])));
    if (!isSame) {
      this.#processes = processes;
      this.#policy = policy;
      this.#programs = programsOf(processes).map((program) => {
        return { program, rule: ruleFor(program, policy) };
      });
    }
    return this.#programs;
  }
}
