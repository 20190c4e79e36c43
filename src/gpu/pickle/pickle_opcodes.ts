/** Opcodes of Python's pickle, protocols 0 to 5 (Lib/pickletools.py), and their operands. */

/** Opcodes of plain values, which snapshots consist of. */
export const Opcode = {
  MARK: 0x28,
  STOP: 0x2e,
  BINFLOAT: 0x47,
  BININT: 0x4a,
  BININT1: 0x4b,
  BININT2: 0x4d,
  NONE: 0x4e,
  BINUNICODE: 0x58,
  APPEND: 0x61,
  APPENDS: 0x65,
  BINGET: 0x68,
  LONG_BINGET: 0x6a,
  BINPUT: 0x71,
  LONG_BINPUT: 0x72,
  SETITEM: 0x73,
  SETITEMS: 0x75,
  TUPLE: 0x74,
  EMPTY_TUPLE: 0x29,
  EMPTY_LIST: 0x5d,
  EMPTY_DICT: 0x7d,
  PROTO: 0x80,
  TUPLE1: 0x85,
  TUPLE2: 0x86,
  TUPLE3: 0x87,
  NEWTRUE: 0x88,
  NEWFALSE: 0x89,
  LONG1: 0x8a,
  SHORT_BINUNICODE: 0x8c,
  BINUNICODE8: 0x8d,
  MEMOIZE: 0x94,
  FRAME: 0x95,
} as const;

/** For each opcode: the number of bytes that always follow it. */
export const OPERAND_BYTES = new Uint8Array(256);
for (const [bytes, ...opcodes] of [
  [1, Opcode.BINGET, Opcode.BINPUT, Opcode.LONG1, Opcode.BININT1, Opcode.SHORT_BINUNICODE],
  [1, Opcode.PROTO],
  [2, Opcode.BININT2],
  [4, Opcode.LONG_BINGET, Opcode.LONG_BINPUT, Opcode.BININT, Opcode.BINUNICODE],
  [8, Opcode.BINFLOAT, Opcode.BINUNICODE8, Opcode.FRAME],
] as const) {
  for (const opcode of opcodes) {
    OPERAND_BYTES[opcode] = bytes;
  }
}

/** A two's complement integer, little-endian; beyond 2^53 the nearest double. */
export function longOf(view: DataView, from: number, to: number): number {
  let value = 0;
  for (let at = to - 1; at >= from; at--) {
    value = value * 256 + view.getUint8(at);
  }
  const negative = to > from && view.getUint8(to - 1) >= 0x80;
  return negative ? value - 256 ** (to - from) : value;
}

/** The same of one to four bytes, which are the upper half of a longer integer: a result that needs no memory. */
export function upperHalf(view: DataView, from: number, to: number): number {
  let value = 0;
  for (let at = to - 1; at >= from; at--) {
    value = (value << 8) | view.getUint8(at);
  }
  const unused = 8 * (4 - to + from);
  return (value << unused) >> unused;
}

/** An operand of one, four or eight bytes. */
export function lengthOf(view: DataView, from: number, to: number): number {
  if (to - from === 1) {
    return view.getUint8(from);
  }
  const high = to - from === 8 ? view.getUint32(from + 4, true) : 0;
  return high * 2 ** 32 + view.getUint32(from, true);
}

/** Other opcodes: they build objects, call functions, or belong to values that snapshots do not contain. */
const REFUSED: Readonly<Record<number, string>> = {
  48: "POP",
  49: "POP_MARK",
  50: "DUP",
  70: "FLOAT",
  73: "INT",
  76: "LONG",
  80: "PERSID",
  81: "BINPERSID",
  82: "REDUCE",
  83: "STRING",
  84: "BINSTRING",
  85: "SHORT_BINSTRING",
  86: "UNICODE",
  66: "BINBYTES",
  67: "SHORT_BINBYTES",
  98: "BUILD",
  99: "GLOBAL",
  100: "DICT",
  103: "GET",
  105: "INST",
  108: "LIST",
  111: "OBJ",
  112: "PUT",
  129: "NEWOBJ",
  130: "EXT1",
  131: "EXT2",
  132: "EXT4",
  139: "LONG4",
  142: "BINBYTES8",
  143: "EMPTY_SET",
  144: "ADDITEMS",
  145: "FROZENSET",
  146: "NEWOBJ_EX",
  147: "STACK_GLOBAL",
  150: "BYTEARRAY8",
  151: "NEXT_BUFFER",
  152: "READONLY_BUFFER",
};

/** "REDUCE", or "0xff" for a byte that is not an opcode. */
export function opcodeName(byte: number): string {
  const plain = Object.entries(Opcode).find(([, code]) => code === byte)?.[0];
  return plain ?? REFUSED[byte] ?? `0x${byte.toString(16).padStart(2, "0")}`;
}
