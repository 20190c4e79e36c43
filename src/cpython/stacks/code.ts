/** Code objects: name, file and lines of a function, read once and cached. */

import type { Address } from "../../model/base/units.js";
import { unreadableMemory } from "../../model/errors/errors.js";
import type { PythonMemory } from "../interpreter/objects.js";
import { readText, typeName, typeOf } from "../interpreter/objects.js";
import { factsOf, type VersionFacts } from "../interpreter/version_facts.js";
import { lineAt } from "./code_lines.js";

export interface Code {
  /** co_qualname, or co_name before 3.11, which has no co_qualname. */
  readonly function: string;
  readonly file: string;
  readonly firstLine: number;
  readonly lines: Uint8Array;
  /** Instructions before this offset belong to no line of the function; 0 before 3.11. */
  readonly firstTraceable: number;
  /** Words of the object; if they change, another object is there now. */
  readonly identity: readonly number[];
}

const MOST_CODE = 65_536;
const LONGEST_TABLE = 2 ** 24;

export class CodeReader {
  readonly #known = new Map<Address, Code>();
  /** Entries that were compared with the memory since the last {@link forget}. */
  readonly #compared = new Set<Address>();
  readonly #lineTable: VersionFacts["lineTable"];
  #codeType: Address = 0;

  constructor(readonly python: PythonMemory) {
    this.#lineTable = factsOf(python.layout.version).lineTable;
  }

  /**
   * A cached entry is compared with the memory before it is used again, because code objects are created and
   * freed.
   */
  forget(): void {
    this.#compared.clear();
  }

  /** Throws TM-E024 if there is no code object. */
  read(address: Address): Code {
    const known = this.#known.get(address);
    if (known !== undefined && this.#compared.has(address)) {
      return known;
    }
    const identity = this.#identityOf(address);
    this.#compared.add(address);
    if (known?.identity.every((word, index) => word === identity[index])) {
      return known;
    }
    const { python } = this;
    const { reader, layout } = python;
    const table = reader.pointer(address + layout.code.lines);
    const length = reader.int64(table + layout.object.variableSize);
    if (!(length >= 0 && length <= LONGEST_TABLE)) {
      throw unreadableMemory(reader.memory.name, table, `a line table of ${length} bytes`);
    }
    const code: Code = {
      function: readText(python, reader.pointer(address + this.#nameOffset)),
      file: readText(python, reader.pointer(address + layout.code.file)),
      firstLine: reader.int32(address + layout.code.firstLine),
      lines: reader.bytes(table + layout.bytes.data, length),
      firstTraceable:
        layout.code.firstTraceable === null
          ? 0
          : reader.int32(address + layout.code.firstTraceable),
      identity,
    };
    if (this.#known.size >= MOST_CODE) {
      this.#known.clear();
      this.#compared.clear();
    }
    this.#known.set(address, code);
    return code;
  }

  /** The line of the instruction at `offset` bytes; 0 if it has none. */
  line(code: Code, offset: number): number {
    return lineAt(this.#lineTable, code.lines, code.firstLine, offset);
  }

  get #nameOffset(): number {
    const { qualifiedName, name } = this.python.layout.code;
    return qualifiedName ?? name;
  }

  #identityOf(address: Address): number[] {
    const { reader, layout } = this.python;
    this.#checkType(address);
    const { file, lines, firstLine } = layout.code;
    return [
      reader.pointer(address + this.#nameOffset),
      reader.pointer(address + file),
      reader.pointer(address + lines),
      reader.int32(address + firstLine),
    ];
  }

  #checkType(address: Address): void {
    const type = typeOf(this.python, address);
    if (type !== this.#codeType) {
      if (typeName(this.python, type) !== "code") {
        throw unreadableMemory(this.python.reader.memory.name, address, "expected a code object");
      }
      this.#codeType = type;
    }
  }
}
