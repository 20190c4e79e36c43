/**
 * Runs the program of a frame description up to one address. The result is a row with the locations of the
 * caller's registers. Source: DWARF 5, sections 6.4.2 and 6.4.3; the System V ABI for x86-64, section 3.7.
 *
 *   top two bits   1 advance by the rest   2 register's offset: uleb * data alignment   3 restore register
 *   else           a separate instruction, followed by its operands
 */
import type { MemoryReader } from "../../linux/index.js";
import type { Address } from "../../model/base/units.js";
import { DamagedUnwinding, DwarfCursor } from "./dwarf_cursor.js";
import type { FrameDescription, Program } from "./frame_description.js";

/** Register numbers of DWARF: rax rdx rcx rbx rsi rdi rbp rsp r8-r15, and the return address. */
export const REGISTER_COUNT = 17;
export const RBP = 6;
export const RSP = 7;
export const RETURN_ADDRESS = 16;

/** Where the caller's value of a register is. */
export type RegisterRule =
  /** The same value as in this frame, which is the default. */
  | { readonly kind: "same" }
  | { readonly kind: "undefined" }
  /** At the canonical frame address plus `offset`. */
  | { readonly kind: "at-offset"; readonly offset: number }
  /** The value is the canonical frame address plus `offset`. */
  | { readonly kind: "offset"; readonly offset: number }
  | { readonly kind: "register"; readonly register: number }
  | { readonly kind: "at-expression"; readonly expression: Program }
  | { readonly kind: "expression"; readonly expression: Program };

/** The canonical frame address: the stack pointer of the caller before its call. */
type FrameAddressRule =
  | { readonly register: number; readonly offset: number }
  | { readonly expression: Program };

export interface UnwindRow {
  readonly frameAddress: FrameAddressRule;
  /** By register; absent means "same". */
  readonly rules: ReadonlyMap<number, RegisterRule>;
  readonly returnRegister: number;
  readonly isSignalFrame: boolean;
}

interface State {
  frameAddress: FrameAddressRule | null;
  rules: Map<number, RegisterRule>;
}

const DEEPEST = 64;

/** Throws DamagedUnwinding, TM-E024. */
export function rowAt(
  reader: MemoryReader,
  description: FrameDescription,
  address: Address,
): UnwindRow {
  const { common } = description;
  const state: State = { frameAddress: null, rules: new Map() };
  const whole = Number.POSITIVE_INFINITY;
  new ProgramRun(reader, description, { program: common.program, state, initial: new Map() }).to(
    whole,
  );
  const initial = new Map(state.rules);
  new ProgramRun(reader, description, { program: description.program, state, initial }).to(address);
  if (state.frameAddress === null) {
    throw new DamagedUnwinding("no rule for the frame's address");
  }
  return {
    frameAddress: state.frameAddress,
    rules: state.rules,
    returnRegister: common.returnRegister,
    isSignalFrame: common.isSignalFrame,
  };
}

/** The state of one run of a program. */
interface RunOf {
  readonly program: Program;
  /** Changed in place. */
  readonly state: State;
  /** The rules that "restore" sets again. */
  readonly initial: ReadonlyMap<number, RegisterRule>;
}

/** Reads an instruction's operands and changes the state. */
type Instruction = (run: ProgramRun) => void;

/** One run of one program, instruction by instruction. */
class ProgramRun {
  readonly cursor: DwarfCursor;
  readonly common: FrameDescription["common"];
  /** The first address for which the current row is valid. */
  location: Address;
  readonly #state: State;
  readonly #initial: ReadonlyMap<number, RegisterRule>;
  readonly #remembered: State[] = [];

  constructor(
    reader: MemoryReader,
    { common, start }: FrameDescription,
    { program, state, initial }: RunOf,
  ) {
    this.cursor = new DwarfCursor(reader, program.start, program.end);
    this.common = common;
    this.location = start;
    this.#state = state;
    this.#initial = initial;
  }

  /** Runs until the program ends or a row starts after `target`. */
  to(target: Address): void {
    while (!this.cursor.done && this.location <= target) {
      const byte = this.cursor.uint8();
      const operand = byte & 0x3f;
      switch (byte >> 6) {
        case 1:
          this.advance(operand);
          break;
        case 2:
          this.set(operand, this.atOffset(this.cursor.uleb128()));
          break;
        case 3:
          this.restore(operand);
          break;
        default: {
          const instruction = INSTRUCTIONS[operand];
          if (instruction === undefined) {
            throw new DamagedUnwinding(`unknown instruction ${byte}`);
          }
          instruction(this);
        }
      }
    }
  }

  advance(steps: number): void {
    this.location += steps * this.common.codeAlignment;
  }

  set(register: number, rule: RegisterRule): void {
    if (register < REGISTER_COUNT) {
      this.#state.rules.set(register, rule); // the others are vector registers and similar
    }
  }

  restore(register: number): void {
    const rule = this.#initial.get(register);
    if (rule === undefined) {
      this.#state.rules.delete(register);
    } else {
      this.#state.rules.set(register, rule);
    }
  }

  /** `units` of the data alignment. */
  atOffset(units: number): RegisterRule {
    return { kind: "at-offset", offset: units * this.common.dataAlignment };
  }

  expression(): Program {
    const length = this.cursor.uleb128();
    const start = this.cursor.at;
    this.cursor.skip(length);
    return { start, end: this.cursor.at };
  }

  setFrameAddress(rule: FrameAddressRule): void {
    this.#state.frameAddress = rule;
  }

  /** null: that half of the rule stays unchanged. */
  moveFrameAddress(register: number | null, offset: number | null): void {
    const before = this.#state.frameAddress;
    if ((register === null || offset === null) && (before === null || "expression" in before)) {
      throw new DamagedUnwinding("half a rule for the frame's address");
    }
    const known = before as { readonly register: number; readonly offset: number };
    this.setFrameAddress({
      register: register ?? known.register,
      offset: offset ?? known.offset,
    });
  }

  rememberState(): void {
    if (this.#remembered.length === DEEPEST) {
      throw new DamagedUnwinding("states remembered without an end");
    }
    const { frameAddress, rules } = this.#state;
    this.#remembered.push({ frameAddress, rules: new Map(rules) });
  }

  restoreState(): void {
    const before = this.#remembered.pop();
    if (before === undefined) {
      throw new DamagedUnwinding("a state restored that was never remembered");
    }
    this.#state.frameAddress = before.frameAddress;
    this.#state.rules = before.rules;
  }
}

/** Instructions by their low six bits, if the top two are 0. Operands are read from left to right. */
const INSTRUCTIONS: Readonly<Record<number, Instruction>> = {
  /* nop                       */ 0: () => {},
  /* set_loc                   */ 1: (run) => {
    run.location = run.cursor.pointer(run.common.pointerEncoding, 0);
  },
  /* advance_loc1              */ 2: (run) => run.advance(run.cursor.uint8()),
  /* advance_loc2              */ 3: (run) => run.advance(run.cursor.uint16()),
  /* advance_loc4              */ 4: (run) => run.advance(run.cursor.uint32()),
  /* offset_extended           */ 5: (run) =>
    run.set(run.cursor.uleb128(), run.atOffset(run.cursor.uleb128())),
  /* restore_extended          */ 6: (run) => run.restore(run.cursor.uleb128()),
  /* undefined                 */ 7: (run) => run.set(run.cursor.uleb128(), { kind: "undefined" }),
  /* same_value                */ 8: (run) => run.set(run.cursor.uleb128(), { kind: "same" }),
  /* register                  */ 9: (run) =>
    run.set(run.cursor.uleb128(), { kind: "register", register: run.cursor.uleb128() }),
  /* remember_state            */ 10: (run) => run.rememberState(),
  /* restore_state             */ 11: (run) => run.restoreState(),
  /* def_cfa                   */ 12: (run) =>
    run.moveFrameAddress(run.cursor.uleb128(), run.cursor.uleb128()),
  /* def_cfa_register          */ 13: (run) => run.moveFrameAddress(run.cursor.uleb128(), null),
  /* def_cfa_offset            */ 14: (run) => run.moveFrameAddress(null, run.cursor.uleb128()),
  /* def_cfa_expression        */ 15: (run) =>
    run.setFrameAddress({ expression: run.expression() }),
  /* expression                */ 16: (run) =>
    run.set(run.cursor.uleb128(), { kind: "at-expression", expression: run.expression() }),
  /* offset_extended_sf        */ 17: (run) =>
    run.set(run.cursor.uleb128(), run.atOffset(run.cursor.sleb128())),
  /* def_cfa_sf                */ 18: (run) =>
    run.moveFrameAddress(run.cursor.uleb128(), run.cursor.sleb128() * run.common.dataAlignment),
  /* def_cfa_offset_sf         */ 19: (run) =>
    run.moveFrameAddress(null, run.cursor.sleb128() * run.common.dataAlignment),
  /* val_offset                */ 20: (run) => setOffset(run, (cursor) => cursor.uleb128()),
  /* val_offset_sf             */ 21: (run) => setOffset(run, (cursor) => cursor.sleb128()),
  /* val_expression            */ 22: (run) =>
    run.set(run.cursor.uleb128(), { kind: "expression", expression: run.expression() }),
  /* GNU_args_size             */ 46: (run) => void run.cursor.uleb128(),
  /* GNU_negative_offset_extended */ 47: (run) =>
    run.set(run.cursor.uleb128(), run.atOffset(-run.cursor.uleb128())),
};

function setOffset(run: ProgramRun, readUnits: (cursor: DwarfCursor) => number): void {
  const register = run.cursor.uleb128();
  run.set(register, { kind: "offset", offset: readUnits(run.cursor) * run.common.dataAlignment });
}
