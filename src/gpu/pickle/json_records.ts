/** Values outside the trace (settings, pool ids, the program's metadata), each as one interned JSON text. */
import { tooLarge } from "../../model/errors/errors.js";
import type { PickleMachine } from "./pickle_machine.js";
import type { StringPool } from "./string_pool.js";
import { Kind } from "./token.js";

/** Limits on the JSON of one value, and of all values together. */
const LARGEST = 2 ** 20;
const LARGEST_TOGETHER = 256 * 2 ** 20;

export type Bracket = "{" | "[";

export class JsonRecords {
  #bytes = 0;

  constructor(readonly strings: StringPool) {}

  /** The string id of the items `[from, to)` of a dictionary or list. */
  make(machine: PickleMachine, from: number, to: number, open: Bracket): number {
    return this.#keep(machine, this.#textOf(machine, from, to, open));
  }

  /** The same, appended to the items of an earlier record, because Python writes long containers in batches. */
  extend(machine: PickleMachine, id: number, from: number, to: number, open: Bracket): number {
    const before = this.strings.text(id);
    // An empty tuple is also a record, and nothing may be added to it.
    if (!before.startsWith(open) || before.length === 2) {
      throw machine.damaged("a container is filled as another kind of container");
    }
    const more = this.#textOf(machine, from, to, open).slice(1);
    return this.#keep(machine, `${before.slice(0, -1)},${more}`);
  }

  #keep(machine: PickleMachine, text: string): number {
    this.#bytes += text.length;
    if (text.length > LARGEST || this.#bytes > LARGEST_TOGETHER) {
      throw tooLarge(
        `the data outside the trace at offset ${machine.offset} of ${machine.path}`,
        "1 MiB per value, 256 MiB in total",
      );
    }
    return this.strings.internText(text);
  }

  #textOf(machine: PickleMachine, from: number, to: number, open: Bracket): string {
    const parts: string[] = [];
    let size = 0;
    for (let at = from; at < to; at += open === "{" ? 2 : 1) {
      const text = this.#valueText(machine, at);
      const part = open === "[" ? text : `${keyText(text)}:${this.#valueText(machine, at + 1)}`;
      size += part.length;
      if (size > LARGEST) {
        throw tooLarge(`a value at offset ${machine.offset} of ${machine.path}`, "1 MiB");
      }
      parts.push(part);
    }
    return `${open}${parts.join(",")}${open === "{" ? "}" : "]"}`;
  }

  #valueText({ stack: { kinds, values } }: PickleMachine, at: number): string {
    const value = values[at] ?? 0;
    switch (kinds[at]) {
      case Kind.number:
        return Number.isFinite(value) ? String(value) : "null";
      case Kind.boolean:
        return value === 1 ? "true" : "false";
      case Kind.string:
        return JSON.stringify(this.strings.text(value));
      case Kind.record:
        return this.strings.text(value);
      case Kind.openDict:
        return "{}";
      case Kind.openList:
        return "[]";
      default:
        return "null";
    }
  }
}

/** A JSON key is text. */
function keyText(json: string): string {
  return json.startsWith('"') ? json : JSON.stringify(json);
}
