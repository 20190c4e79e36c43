/**
 * One entry of .eh_frame: how a range of code uses the stack (FDE), or what several such entries have in common
 * (CIE). Source: Linux Standard Base, "DWARF Extensions", section .eh_frame; DWARF 5, section 6.4.1.
 *
 *   u32 length (ffffffff: u64 length follows; 0: the end)
 *   CIE   u32 0   u8 version   text augmentation   uleb code alignment   sleb data alignment
 *         return register (u8 in version 1, else uleb)   [z: uleb length, then by letter]   program
 *   FDE   u32 distance back to its CIE   pointer to the code   its length   [z: uleb length, ...]   program
 *
 *   letters   R u8 encoding of the FDEs' pointers   P u8 encoding, pointer (personality)   L u8 encoding (LSDA)
 *             S frame of a signal handler
 */
import type { MemoryReader } from "../../linux/index.js";
import type { Address, Bytes } from "../../model/base/units.js";
import { DamagedUnwinding, DwarfCursor, NO_POINTER } from "./dwarf_cursor.js";

export interface Program {
  readonly start: Address;
  readonly end: Address;
}

interface CommonInformation {
  readonly codeAlignment: number;
  readonly dataAlignment: number;
  readonly returnRegister: number;
  readonly pointerEncoding: number;
  readonly augmented: boolean;
  readonly isSignalFrame: boolean;
  readonly program: Program;
}

export interface FrameDescription {
  readonly common: CommonInformation;
  readonly start: Address;
  /** The address after the last byte. */
  readonly end: Address;
  readonly program: Program;
}

/** Address of the entry. */
interface EntryExtent {
  /** Address after the length. */
  readonly body: Address;
  readonly end: Address;
  /** 0 for a CIE; else how far before `body` it is. */
  readonly distance: Bytes;
}

/** The largest ones that compilers write are a few KiB. */
const LONGEST_ENTRY: Bytes = 2 ** 20;
const LONGEST_AUGMENTATION = 16;

/** null at the end of the section. */
export function entryAt(reader: MemoryReader, at: Address): EntryExtent | null {
  const short = reader.uint32(at);
  if (short === 0) {
    return null;
  }
  const length = short === 0xffffffff ? reader.uint64(at + 4) : short;
  const body = at + (short === 0xffffffff ? 12 : 4);
  if (!(length >= 4 && length <= LONGEST_ENTRY)) {
    throw new DamagedUnwinding(`an entry of ${length} bytes`);
  }
  return { body, end: body + length, distance: reader.uint32(body) };
}

/** `base` is the start of .eh_frame_hdr. Throws DamagedUnwinding, TM-E024. */
export function readFrameDescription(
  reader: MemoryReader,
  at: Address,
  base: Address,
): FrameDescription {
  const entry = entryAt(reader, at);
  if (entry === null || entry.distance === 0) {
    throw new DamagedUnwinding("an entry that describes no code");
  }
  const common = readCommonInformation(reader, entry.body - entry.distance);
  const cursor = new DwarfCursor(reader, entry.body + 4, entry.end);
  const start = cursor.pointer(common.pointerEncoding, base);
  const end = start + cursor.pointer(common.pointerEncoding & 0xf, 0);
  if (common.augmented) {
    cursor.skip(cursor.uleb128());
  }
  return { common, start, end, program: { start: cursor.at, end: entry.end } };
}

function readCommonInformation(reader: MemoryReader, at: Address): CommonInformation {
  const entry = entryAt(reader, at);
  if (entry === null || entry.distance !== 0) {
    throw new DamagedUnwinding("an entry without common information");
  }
  const cursor = new DwarfCursor(reader, entry.body + 4, entry.end);
  const version = cursor.uint8();
  if (version !== 1 && version !== 3) {
    throw new DamagedUnwinding(`common information of version ${version}`);
  }
  const letters = readLetters(cursor);
  const codeAlignment = cursor.uleb128();
  const dataAlignment = cursor.sleb128();
  const returnRegister = version === 1 ? cursor.uint8() : cursor.uleb128();
  let pointerEncoding = 0;
  let isSignalFrame = false;
  if (letters !== "") {
    const length = cursor.uleb128();
    const behind = cursor.at + length;
    for (const letter of letters.slice(1)) {
      if (letter === "R") {
        pointerEncoding = cursor.uint8();
      } else if (letter === "S") {
        isSignalFrame = true;
      } else if (letter === "L") {
        cursor.skip(1);
      } else if (letter === "P") {
        const encoding = cursor.uint8();
        // The pointer is skipped, so neither its value nor its base matters.
        cursor.pointer(encoding === NO_POINTER ? 0 : encoding & 0xf, 0);
      } else {
        throw new DamagedUnwinding(`unknown augmentation ${JSON.stringify(letters)}`);
      }
    }
    cursor.at = behind;
  }
  return {
    codeAlignment,
    dataAlignment,
    returnRegister,
    pointerEncoding,
    augmented: letters !== "",
    isSignalFrame,
    program: { start: cursor.at, end: entry.end },
  };
}

/** The augmentation is "" or "z..."; any other one has an unknown layout. */
function readLetters(cursor: DwarfCursor): string {
  let letters = "";
  for (let byte = cursor.uint8(); byte !== 0; byte = cursor.uint8()) {
    letters += String.fromCharCode(byte);
    if (letters[0] !== "z" || letters.length > LONGEST_AUGMENTATION) {
      throw new DamagedUnwinding(`unknown augmentation ${JSON.stringify(letters)}`);
    }
  }
  return letters;
}
