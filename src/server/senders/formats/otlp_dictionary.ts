/** The dictionary that all profiles of an OTLP request share. Index 0 of each table is its zero value. */

import { frameKindOf } from "./pprof.js";
import { malformed, withinLimit } from "./received_profile.js";
import type { ReceivedFrame } from "./received_samples.js";
import { pushNumbers, readLine, readMessage, type WireReader, WireType } from "./wire.js";

const MOST_ROWS = 200_000;

export interface OtlpDictionary {
  readonly strings: readonly string[];
  /** By index; those without a key are not listed. */
  readonly attributes: readonly (readonly [string, string])[];
  /** Leaf first. Throws TidemarkError for a stack that is not there. */
  framesOf(stack: number): readonly ReceivedFrame[];
}

interface Tables {
  readonly locations: { readonly function: number; readonly line: number }[][];
  readonly functions: { readonly name: number; readonly file: number }[];
  readonly strings: string[];
  readonly attributes: { readonly key: number; readonly value: string }[];
  readonly stacks: number[][];
}

/** ProfilesDictionary: mapping 1, location 2, function 3, link 4, string 5, attribute 6, stack 7. Throws TidemarkError. */
export function readDictionary(message: WireReader): OtlpDictionary {
  const tables: Tables = { locations: [], functions: [], strings: [], attributes: [], stacks: [] };
  let rows = 0;
  readMessage(message, (field, _type, reader) => {
    rows += 1;
    if (rows > MOST_ROWS) {
      malformed(`its dictionary has more than ${MOST_ROWS} rows`);
    }
    switch (field) {
      case 2:
        tables.locations.push(readLocation(reader.message()));
        return true;
      case 3:
        tables.functions.push(readFunction(reader.message()));
        return true;
      case 5:
        tables.strings.push(reader.name());
        return true;
      case 6:
        tables.attributes.push(readAttribute(reader.message()));
        return true;
      case 7:
        tables.stacks.push(readStack(reader.message()));
        return true;
      default:
        return false;
    }
  });
  const text = (index: number) =>
    tables.strings[index] ?? malformed("a name is not in the dictionary");
  // Profiles of one request share their stacks.
  const known = new Map<number, readonly ReceivedFrame[]>();
  return {
    strings: tables.strings,
    attributes: tables.attributes.map(({ key, value }) => [text(key), value]),
    framesOf: (stack) => {
      let frames = known.get(stack);
      if (frames === undefined) {
        frames = framesOf(tables, stack, text);
        known.set(stack, frames);
      }
      return frames;
    },
  };
}

function framesOf(
  { stacks, locations, functions }: Tables,
  stack: number,
  text: (index: number) => string,
): readonly ReceivedFrame[] {
  const found = stacks[stack] ?? malformed("a stack is not in the dictionary");
  const frames = found.flatMap((index) =>
    (locations[index] ?? malformed("a location is not in the dictionary")).map(
      (line): ReceivedFrame => {
        const { name, file } =
          functions[line.function] ?? malformed("a function is not in the dictionary");
        const path = text(file);
        return { function: text(name), file: path, line: line.line, kind: frameKindOf(path) };
      },
    ),
  );
  withinLimit("stack-depth", frames.length);
  return frames;
}

/** Location: lines 3 (up to 1.9: lines 3 or 4). */
function readLocation(message: WireReader): Tables["locations"][number] {
  const lines: { function: number; line: number }[] = [];
  readMessage(message, (field, type, reader) => {
    if ((field !== 3 && field !== 4) || type !== WireType.LengthDelimited) {
      return false;
    }
    const content = reader.message();
    if (field === 4 && lines.length > 0) {
      return true;
    }
    withinLimit("stack-depth", lines.push(readLine(content)));
    return true;
  });
  return lines;
}

/** Function: name 1, system name 2, file 3. */
function readFunction(message: WireReader): Tables["functions"][number] {
  const found = { name: 0, file: 0 };
  readMessage(message, (field, type, reader) => {
    if (type !== WireType.Varint) {
      return false;
    }
    if (field === 1) {
      found.name = reader.signed();
    } else if (field === 3) {
      found.file = reader.signed();
    } else {
      return false;
    }
    return true;
  });
  return found;
}

/** Stack: location indices 1. */
function readStack(message: WireReader): number[] {
  const locations: number[] = [];
  readMessage(message, (field, type, reader) => {
    if (field !== 1) {
      return false;
    }
    pushNumbers(locations, type, reader, 1000);
    withinLimit("stack-depth", locations.length);
    return true;
  });
  return locations;
}

/** KeyValueAndUnit: key 1 (an index), value 2, unit 3. */
function readAttribute(message: WireReader): Tables["attributes"][number] {
  const found = { key: 0, value: "" };
  readMessage(message, (field, type, reader) => {
    if (field === 1 && type === WireType.Varint) {
      found.key = reader.signed();
    } else if (field === 2) {
      found.value = readValue(reader.message());
    } else {
      return false;
    }
    return true;
  });
  return found;
}

/** Attributes of a Resource: KeyValue{key 1, value 2} in field 1. Throws TidemarkError. */
export function readPairs(message: WireReader): [string, string][] {
  const pairs: [string, string][] = [];
  readMessage(message, (field, _type, reader) => {
    if (field !== 1) {
      return false;
    }
    const pair: [string, string] = ["", ""];
    readMessage(reader.message(), (part, _partType, inner) => {
      if (part === 1) {
        pair[0] = inner.string();
      } else if (part === 2) {
        pair[1] = readValue(inner.message());
      } else {
        return false;
      }
      return true;
    });
    if (pair[1] !== "") {
      pairs.push(pair);
    }
    withinLimit("sample-labels", pairs.length - 70);
    return true;
  });
  return pairs;
}

/** AnyValue: string 1, bool 2, int 3, double 4. Lists and maps, which nest, are left out: "". */
function readValue(message: WireReader): string {
  let value = "";
  readMessage(message, (field, _type, reader) => {
    switch (field) {
      case 1:
        value = reader.string();
        return true;
      case 2:
        value = String(reader.unsigned() !== 0);
        return true;
      case 3:
        value = String(reader.signed());
        return true;
      case 4:
        value = String(reader.double());
        return true;
      default:
        return false;
    }
  });
  return value;
}
