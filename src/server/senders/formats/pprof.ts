/**
 * Profiles in pprof's format. Source: https://github.com/google/pprof/blob/main/proto/profile.proto; the numbers below
 * are its field numbers.
 */
import { FrameKind } from "../../../model/profile/profile.js";
import {
  type DecodedProfile,
  type Figure,
  figureOf,
  malformed,
  type ReceivedFrame,
  type ReceivedSample,
  timeOfNanos,
  withinLimit,
} from "./received_profile.js";
import { pushNumbers, pushSigned, readLine, readMessage } from "./wire.js";

const MS_PER_NANO = 1e-6;
/** Largest table; no profiler writes larger ones. */
const MOST_VALUES = 64;
const NATIVE_FILE = /(^\[)|\.so(\.|$)|\.(c|cc|cpp|cxx|h|hpp|rs)$/;

interface RawSample {
  readonly locations: number[];
  readonly values: number[];
  readonly labels: { key: number; text: number; number: number }[];
}

interface RawProfile {
  readonly strings: string[];
  readonly types: { type: number; unit: number }[];
  readonly samples: RawSample[];
  /** By id: its lines, leaf first. */
  readonly locations: Map<number, { function: number; line: number }[]>;
  readonly functions: Map<number, { name: number; file: number }>;
  periodType: { type: number; unit: number };
  period: number;
  timeNanos: number;
  durationNanos: number;
}

/** A plain (not compressed) profile. Throws TidemarkError. */
export function decodePprof(bytes: Uint8Array): DecodedProfile {
  const raw = readProfile(bytes);
  const text = (index: number) => raw.strings[index] ?? malformed("a name is not in its table");
  const figures = raw.types.map(({ type }) => figureOf(text(type)));
  const frames = framesOf(raw, text);
  let depths = 0;
  const samples: ReceivedSample[] = [];
  for (const sample of raw.samples) {
    if (sample.values.length !== raw.types.length) {
      malformed("a sample has not one value for each sample type");
    }
    if (!figures.some((figure, at) => figure !== null && sample.values[at] !== 0)) {
      continue;
    }
    // A loop, because flatMap took a fifth of the time that a profile takes.
    const stack: ReceivedFrame[] = [];
    for (const id of sample.locations) {
      for (const frame of frames.get(id) ?? malformed("a location is not in its table")) {
        stack.push(frame);
      }
    }
    withinLimit("stack-depth", stack.length);
    depths += stack.length;
    withinLimit("frames-per-profile", depths);
    samples.push({
      frames: stack,
      ...figuresOf(sample.values, figures),
      ...labelsOf(sample, text),
    });
  }
  const isSpace = text(raw.periodType.type) === "space";
  return {
    samples,
    figures: [...new Set(figures.filter((figure) => figure !== null))],
    timeMs: timeOfNanos(raw.timeNanos),
    durationMs: Math.max(0, Math.round(raw.durationNanos * MS_PER_NANO)),
    periodBytes: isSpace ? Math.max(0, raw.period) : 0,
  };
}

/** The values of a sample by figure. Throws TidemarkError for a negative value. */
export function figuresOf(
  values: readonly number[],
  figures: readonly (Figure | null)[],
): Record<Figure, number> {
  const sums = { liveBytes: 0, liveObjects: 0, allocatedBytes: 0, allocatedObjects: 0 };
  figures.forEach((figure, at) => {
    const value = values[at] ?? 0;
    if (figure !== null) {
      if (value < 0) {
        malformed("a value is negative");
      }
      sums[figure] += value;
    }
  });
  return sums;
}

export function frameKindOf(file: string): FrameKind {
  return NATIVE_FILE.test(file) ? FrameKind.native : FrameKind.python;
}

function framesOf(
  raw: RawProfile,
  text: (index: number) => string,
): ReadonlyMap<number, readonly ReceivedFrame[]> {
  const frames = new Map<number, readonly ReceivedFrame[]>();
  for (const [id, lines] of raw.locations) {
    frames.set(
      id,
      lines.map(({ function: functionId, line }) => {
        const found = raw.functions.get(functionId) ?? malformed("a function is not in its table");
        const file = text(found.file);
        return { function: text(found.name), file, line, kind: frameKindOf(file) };
      }),
    );
  }
  return frames;
}

/**
 * The thread's name apart from the other labels. Ids and times of single events are left out, because they would make
 * each sample unique.
 */
function labelsOf(
  { labels }: RawSample,
  text: (index: number) => string,
): Pick<ReceivedSample, "thread" | "labels"> {
  const pairs = labels.map(({ key, text: value, number }) => ({
    key: text(key),
    value: value === 0 ? String(number) : text(value),
    isNumber: value === 0,
  }));
  return {
    thread: pairs.find(({ key }) => key === "thread name" || key === "thread_name")?.value ?? "",
    labels: pairs.flatMap(({ key, value, isNumber }) =>
      isNumber || key.startsWith("thread") || key.startsWith("span id") || value === ""
        ? []
        : [[key, value] as const],
    ),
  };
}

function readProfile(bytes: Uint8Array): RawProfile {
  const raw: RawProfile = {
    strings: [],
    types: [],
    samples: [],
    locations: new Map(),
    functions: new Map(),
    periodType: { type: 0, unit: 0 },
    period: 0,
    timeNanos: 0,
    durationNanos: 0,
  };
  readMessage(bytes, (field, _type, reader) => {
    switch (field) {
      case 1:
        raw.types.push(readValueType(reader.bytes()));
        return raw.types.length <= MOST_VALUES || malformed("it has too many sample types");
      case 2:
        withinLimit("samples-per-profile", raw.samples.length + 1);
        raw.samples.push(readSample(reader.bytes()));
        return true;
      case 4:
        readLocation(reader.bytes(), raw);
        return true;
      case 5:
        readFunction(reader.bytes(), raw);
        return true;
      case 6: {
        const string = reader.bytes();
        withinLimit("name-bytes", string.length);
        raw.strings.push(Buffer.from(string).toString("utf8"));
        return true;
      }
      case 9:
        raw.timeNanos = Number(reader.int64());
        return true;
      case 10:
        raw.durationNanos = Number(reader.int64());
        return true;
      case 11:
        raw.periodType = readValueType(reader.bytes());
        return true;
      case 12:
        raw.period = Number(reader.int64());
        return true;
      default:
        return false;
    }
  });
  if (raw.strings.length === 0) {
    raw.strings.push("");
  }
  return raw;
}

function readValueType(bytes: Uint8Array): { type: number; unit: number } {
  const value = { type: 0, unit: 0 };
  readMessage(bytes, (field, _type, reader) => {
    if (field === 1) {
      value.type = Number(reader.int64());
    } else if (field === 2) {
      value.unit = Number(reader.int64());
    } else {
      return false;
    }
    return true;
  });
  return value;
}

function readSample(bytes: Uint8Array): RawSample {
  const sample: RawSample = { locations: [], values: [], labels: [] };
  readMessage(bytes, (field, type, reader) => {
    if (field === 1) {
      pushNumbers(sample.locations, type, reader, 1000);
      withinLimit("stack-depth", sample.locations.length);
    } else if (field === 2) {
      pushSigned(sample.values, type, reader);
    } else if (field === 3) {
      withinLimit("sample-labels", sample.labels.length + 1);
      sample.labels.push(readLabel(reader.bytes()));
    } else {
      return false;
    }
    return true;
  });
  return sample;
}

function readLabel(bytes: Uint8Array): RawSample["labels"][number] {
  const label = { key: 0, text: 0, number: 0 };
  readMessage(bytes, (field, _type, reader) => {
    if (field === 1) {
      label.key = Number(reader.int64());
    } else if (field === 2) {
      label.text = Number(reader.int64());
    } else if (field === 3) {
      label.number = Number(reader.int64());
    } else {
      return false;
    }
    return true;
  });
  return label;
}

function readLocation(bytes: Uint8Array, raw: RawProfile): void {
  let id = 0;
  const lines: { function: number; line: number }[] = [];
  readMessage(bytes, (field, _type, reader) => {
    if (field === 1) {
      id = Number(reader.uint64());
    } else if (field === 4) {
      withinLimit("stack-depth", lines.push(readLine(reader.bytes())));
    } else {
      return false;
    }
    return true;
  });
  raw.locations.set(id, lines);
}

function readFunction(bytes: Uint8Array, raw: RawProfile): void {
  let id = 0;
  const found = { name: 0, file: 0 };
  readMessage(bytes, (field, _type, reader) => {
    if (field === 1) {
      id = Number(reader.uint64());
    } else if (field === 2) {
      found.name = Number(reader.int64());
    } else if (field === 4) {
      found.file = Number(reader.int64());
    } else {
      return false;
    }
    return true;
  });
  raw.functions.set(id, found);
}
