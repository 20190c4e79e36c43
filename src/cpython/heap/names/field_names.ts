/**
 * Names of the fields of objects that are defined in C code or by `__slots__`:
 *
 *   type ── tp_members 240 ──> { name 0  type i32 8  offset 16  flags 24  doc 32 } ..., ended by a null name
 *    └───── tp_base (whose members the type has, too)
 *
 * A slot of a class is such a member. Fields of exceptions and tracebacks have getters instead and are named by
 * their position. Sources: Include/descrobject.h (structmember.h), pyerrors.h.
 */
import { MemoryReader } from "../../../linux/index.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import { TidemarkError } from "../../../model/errors/errors.js";
import type { HeapPages } from "../memory/heap_pages.js";
import type { HeapLayout } from "../memory/layout.js";
import type { TypeRow, TypeTable } from "../objects/type_table.js";

const TYPE_FLAGS = 168;
const TYPE_MEMBERS = 240;
const MEMBER_BYTES = 40;
const MEMBER_TYPE = 8;
const MEMBER_OFFSET = 16;
const OBJECT_MEMBERS = [6, 16]; // Py_T_OBJECT, Py_T_OBJECT_EX
const MOST_MEMBERS = 1024;
const LONGEST_NAME = 128;
const MOST_BASES = 64;
const EXCEPTION_FLAG = 2 ** 30;

const TRACEBACK_FIELDS: readonly (readonly [Bytes, string])[] = [
  [16, "tb_next"],
  [24, "tb_frame"],
];
/** The fields from args on; 3.11 put the notes before the traceback. */
const EXCEPTION_FIELDS = ["args", "__notes__", "__traceback__", "__context__", "__cause__"];
const EXCEPTION_ARGS = 24;

type Fields = readonly (readonly [offset: Bytes, name: string])[];

export class FieldNames {
  readonly #fields = new Map<TypeRow, Fields>();
  readonly #reader: MemoryReader;

  constructor(
    readonly copy: HeapPages,
    readonly layout: HeapLayout,
    readonly types: TypeTable,
  ) {
    this.#reader = new MemoryReader(copy);
  }

  /** The field in which an object of that type holds another; null if it has no name. */
  nameOf(object: Address, row: TypeRow, held: Address): string | null {
    const field = this.#fieldsOf(row).find(([offset]) => this.copy.word(object + offset) === held);
    return field?.[1] ?? null;
  }

  /** The fields of an object that are set. */
  valuesOf(object: Address, row: TypeRow): [name: string, value: Address][] {
    return this.#fieldsOf(row).flatMap(([offset, name]): [string, Address][] => {
      const value = this.copy.word(object + offset);
      return value > 0 ? [[name, value]] : [];
    });
  }

  #fieldsOf(row: TypeRow): Fields {
    let fields = this.#fields.get(row);
    if (fields === undefined) {
      fields = [...this.#members(row), ...this.#known(row)];
      this.#fields.set(row, fields);
    }
    return fields;
  }

  #members(row: TypeRow): Fields {
    const found: [Bytes, string][] = [];
    let type = row;
    for (let depth = 0; type >= 0 && depth < MOST_BASES; depth++) {
      try {
        this.#ownMembers(this.types.of(type).address, found);
      } catch (error) {
        if (!(error instanceof TidemarkError)) {
          throw error;
        }
        // The type was torn: what was read so far is used.
      }
      type = this.types.of(type).base;
    }
    return found;
  }

  #ownMembers(type: Address, found: [Bytes, string][]): void {
    const reader = this.#reader;
    let member = reader.pointer(type + TYPE_MEMBERS);
    for (let n = 0; member !== 0 && n < MOST_MEMBERS; n++, member += MEMBER_BYTES) {
      const name = reader.pointer(member);
      if (name === 0) {
        return;
      }
      if (OBJECT_MEMBERS.includes(reader.int32(member + MEMBER_TYPE))) {
        found.push([reader.int64(member + MEMBER_OFFSET), reader.cstring(name, LONGEST_NAME)]);
      }
    }
  }

  #known(row: TypeRow): Fields {
    if (this.types.name(row) === "traceback") {
      return TRACEBACK_FIELDS;
    }
    const flags = this.copy.word(this.types.of(row).address + TYPE_FLAGS);
    if (flags < 0 || Math.floor(flags / EXCEPTION_FLAG) % 2 === 0) {
      return [];
    }
    const names = EXCEPTION_FIELDS.filter(
      (name) => this.layout.exceptionNotes || name !== "__notes__",
    );
    return names.map((name, n) => [EXCEPTION_ARGS + n * 8, name] as const);
  }
}
