/** One step up a stack using a row of rules: the registers of the caller after the call returns. */
import type { MemoryReader } from "../../linux/index.js";
import type { Address } from "../../model/base/units.js";
import { RETURN_ADDRESS, type RegisterRule, RSP, type UnwindRow } from "./call_frame_program.js";
import { DamagedUnwinding } from "./dwarf_cursor.js";
import { evaluate } from "./dwarf_expression.js";
import type { Program } from "./frame_description.js";
import type { ThreadView } from "./thread_view.js";

/**
 * null if the row has no caller. Registers whose location is not in the copy are NaN. Throws DamagedUnwinding,
 * TM-E024.
 */
export function callerByRow(
  reader: MemoryReader,
  view: ThreadView,
  row: UnwindRow,
): { readonly registers: Float64Array; readonly isSignalFrame: boolean } | null {
  const value = (expression: Program, first: Address | null) =>
    evaluate(reader, expression, view, first);
  const { frameAddress: rule } = row;
  const frameAddress =
    "expression" in rule
      ? value(rule.expression, null)
      : view.register(rule.register) + rule.offset;
  if (!(frameAddress >= 0)) {
    throw new DamagedUnwinding("the frame's address depends on a register that is not known");
  }
  const returnRule = row.rules.get(row.returnRegister);
  if (returnRule?.kind === "undefined") {
    return null;
  }
  if (returnRule === undefined) {
    throw new DamagedUnwinding("no rule for the return address");
  }
  const ruled = (registerRule: RegisterRule, register: number): number => {
    switch (registerRule.kind) {
      case "same":
        return view.register(register);
      case "undefined":
        return Number.NaN;
      case "at-offset":
        return view.word(frameAddress + registerRule.offset);
      case "offset":
        return frameAddress + registerRule.offset;
      case "register":
        return view.register(registerRule.register);
      case "at-expression":
        return view.word(value(registerRule.expression, frameAddress));
      case "expression":
        return value(registerRule.expression, frameAddress);
    }
  };
  const registers = Float64Array.from(view.registers);
  registers[RSP] = frameAddress;
  for (const [register, registerRule] of row.rules) {
    registers[register] = ruled(registerRule, register);
  }
  registers[RETURN_ADDRESS] = ruled(returnRule, row.returnRegister);
  return { registers, isSignalFrame: row.isSignalFrame };
}
