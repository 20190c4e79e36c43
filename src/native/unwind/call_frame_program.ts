/**
 * The program of a frame description, run up to one address: what it makes is a row that tells where the caller's
 * registers are. Source: DWARF 5, sections 6.4.2 and 6.4.3; the System V ABI for x86-64, section 3.7.
 *
 *   top two bits   1 advance by the rest   2 register's offset: uleb * data alignment   3 restore register
 *   else           an instruction of its own with operands behind it
 */
import type { MemoryReader } from "../../linux/index.js";
import type { Address } from "../../model/base/units.js";
import { DamagedUnwinding, DwarfCursor } from "./dwarf_cursor.js";
import type { FrameDescription, Program } from "./frame_description.js";

/** As DWARF numbers them: rax rdx rcx rbx rsi rdi rbp rsp r8-r15, and the return address. */
export const REGISTER_COUNT = 17;
export const RBP = 6;
export const RSP = 7;
export const RETURN_ADDRESS = 16;

/** Where the caller's value of a register is. */
export type RegisterRule =
  /** As it is in this frame: what no program says. */
  | { readonly kind: "same" }
  | { readonly kind: "undefined" }
  /** At the canonical frame address and `offset`. */
  | { readonly kind: "at-offset"; readonly offset: number }
  /** Is the canonical frame address and `offset`. */
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
  /** By register; absent: "same". */
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
  run(reader, description, common.program, state, new Map(), Number.POSITIVE_INFINITY);
  const initial = new Map(state.rules);
  run(reader, description, description.program, state, initial, address);
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

/** `initial`: what "restore" leads back to. */
function run(
  reader: MemoryReader,
  { common, start }: FrameDescription,
  program: Program,
  state: State,
  initial: ReadonlyMap<number, RegisterRule>,
  target: Address,
): void {
  const cursor = new DwarfCursor(reader, program.start, program.end);
  const remembered: State[] = [];
  const { codeAlignment, dataAlignment } = common;
  let location = start;
  const set = (register: number, rule: RegisterRule) => {
    if (register < REGISTER_COUNT) {
      state.rules.set(register, rule); // the others are vector registers and the like
    }
  };
  const restore = (register: number) => {
    const rule = initial.get(register);
    if (rule === undefined) {
      state.rules.delete(register);
    } else {
      state.rules.set(register, rule);
    }
  };
  const atOffset = (offset: number): RegisterRule => ({ kind: "at-offset", offset });
  const expression = (): Program => {
    const length = cursor.uleb128();
    const from = cursor.at;
    cursor.skip(length);
    return { start: from, end: cursor.at };
  };
  const moveFrameAddress = (register: number | null, offset: number | null) => {
    const before = state.frameAddress;
    if ((register === null || offset === null) && (before === null || "expression" in before)) {
      throw new DamagedUnwinding("half a rule for the frame's address");
    }
    const known = before as { readonly register: number; readonly offset: number };
    state.frameAddress = { register: register ?? known.register, offset: offset ?? known.offset };
  };

  while (!cursor.done) {
    const byte = cursor.uint8();
    const operand = byte & 0x3f;
    let advance = 0;
    switch (byte >> 6) {
      case 1:
        advance = operand;
        break;
      case 2:
        set(operand, atOffset(cursor.uleb128() * dataAlignment));
        continue;
      case 3:
        restore(operand);
        continue;
      default:
        switch (operand) {
          case 0x00: // nop
            continue;
          case 0x01: // set_loc
            location = cursor.pointer(common.pointerEncoding, 0);
            break;
          case 0x02:
            advance = cursor.uint8();
            break;
          case 0x03:
            advance = cursor.uint16();
            break;
          case 0x04:
            advance = cursor.uint32();
            break;
          case 0x05: // offset_extended
            set(cursor.uleb128(), atOffset(cursor.uleb128() * dataAlignment));
            continue;
          case 0x06: // restore_extended
            restore(cursor.uleb128());
            continue;
          case 0x07:
            set(cursor.uleb128(), { kind: "undefined" });
            continue;
          case 0x08:
            set(cursor.uleb128(), { kind: "same" });
            continue;
          case 0x09:
            set(cursor.uleb128(), { kind: "register", register: cursor.uleb128() });
            continue;
          case 0x0a: // remember_state
            if (remembered.length === DEEPEST) {
              throw new DamagedUnwinding("states remembered without an end");
            }
            remembered.push({ frameAddress: state.frameAddress, rules: new Map(state.rules) });
            continue;
          case 0x0b: {
            const before = remembered.pop();
            if (before === undefined) {
              throw new DamagedUnwinding("a state restored that was never remembered");
            }
            state.frameAddress = before.frameAddress;
            state.rules = before.rules;
            continue;
          }
          case 0x0c: // def_cfa
            moveFrameAddress(cursor.uleb128(), cursor.uleb128());
            continue;
          case 0x0d: // def_cfa_register
            moveFrameAddress(cursor.uleb128(), null);
            continue;
          case 0x0e: // def_cfa_offset
            moveFrameAddress(null, cursor.uleb128());
            continue;
          case 0x0f: // def_cfa_expression
            state.frameAddress = { expression: expression() };
            continue;
          case 0x10:
            set(cursor.uleb128(), { kind: "at-expression", expression: expression() });
            continue;
          case 0x11: // offset_extended_sf
            set(cursor.uleb128(), atOffset(cursor.sleb128() * dataAlignment));
            continue;
          case 0x12: // def_cfa_sf
            moveFrameAddress(cursor.uleb128(), cursor.sleb128() * dataAlignment);
            continue;
          case 0x13: // def_cfa_offset_sf
            moveFrameAddress(null, cursor.sleb128() * dataAlignment);
            continue;
          case 0x14: // val_offset
            set(cursor.uleb128(), { kind: "offset", offset: cursor.uleb128() * dataAlignment });
            continue;
          case 0x15: // val_offset_sf
            set(cursor.uleb128(), { kind: "offset", offset: cursor.sleb128() * dataAlignment });
            continue;
          case 0x16: // val_expression
            set(cursor.uleb128(), { kind: "expression", expression: expression() });
            continue;
          case 0x2e: // GNU_args_size
            cursor.uleb128();
            continue;
          case 0x2f: // GNU_negative_offset_extended
            set(cursor.uleb128(), atOffset(-cursor.uleb128() * dataAlignment));
            continue;
          default:
            throw new DamagedUnwinding(`unknown instruction ${byte}`);
        }
    }
    location += advance * codeAlignment;
    if (location > target) {
      return;
    }
  }
}
