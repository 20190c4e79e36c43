/**
 * Profiles in pprof's format. Source: https://github.com/google/pprof/blob/main/proto/profile.proto; the numbers below
 * are its field numbers.
 *
 * A profile is read in two passes, because its samples come before the tables that they refer to: the first finds the
 * samples and reads the tables, the second reads the samples straight into columns.
 */
import { FrameKind } from "../../../model/profile/profile.js";
import {
  type DecodedProfile,
  figureOf,
  malformed,
  timeOfNanos,
  withinLimit,
} from "./received_profile.js";
import { type Figure, type Labels, SampleCollector } from "./received_samples.js";
import {
  Numbers,
  pushNumbers,
  pushSigned,
  readLine,
  readMessage,
  type WireReader,
} from "./wire.js";

const MS_PER_NANO = 1e-6;
/** Largest table; no profiler writes larger ones. */
const MOST_VALUES = 64;
const MOST_COUNTED = 1 << 16;
const NATIVE_FILE = /(^\[)|\.so(\.|$)|\.(c|cc|cpp|cxx|h|hpp|rs)$/;

interface RawLabel {
  key: number;
  text: number;
  number: number;
}

interface RawProfile {
  readonly strings: string[];
  readonly types: { type: number; unit: number }[];
  /** Where each sample begins and ends. */
  readonly samples: WireReader[];
  /** By id: its lines, leaf first. */
  readonly locations: Map<number, { function: number; line: number }[]>;
  readonly functions: Map<number, { name: number; file: number }>;
  periodType: { type: number; unit: number };
  period: number;
  timeNanos: number;
  durationNanos: number;
}

/** A plain (not compressed) profile. Throws TidemarkError. */
export function decodePprof(bytes: Buffer): DecodedProfile {
  const raw = readProfile(bytes);
  const text = (index: number) => raw.strings[index] ?? malformed("a name is not in its table");
  const figures = raw.types.map(({ type }) => figureOf(text(type)));
  const samples = samplesOf(raw, figures, text);
  const isSpace = text(raw.periodType.type) === "space";
  return {
    samples: samples.samples(),
    figures: [...new Set(figures.filter((figure) => figure !== null))],
    timeMs: timeOfNanos(raw.timeNanos),
    durationMs: Math.max(0, Math.round(raw.durationNanos * MS_PER_NANO)),
    periodBytes: isSpace ? Math.max(0, raw.period) : 0,
  };
}

function samplesOf(
  raw: RawProfile,
  figures: readonly (Figure | null)[],
  text: (index: number) => string,
): SampleCollector {
  const samples = new SampleCollector();
  const framesOf = frameRows(raw, samples, text);
  const rowsOf = labelRows(samples, text);
  const locations = new Numbers();
  const values = new Numbers();
  const labels: RawLabel[] = [];
  for (const reader of raw.samples) {
    locations.length = 0;
    values.length = 0;
    labels.length = 0;
    readSample(reader, locations, values, labels);
    if (values.length !== figures.length) {
      malformed("a sample has not one value for each sample type");
    }
    if (!figures.some((figure, at) => figure !== null && values.at(at) !== 0)) {
      continue;
    }
    const start = samples.framesPushed;
    for (let depth = 0; depth < locations.length; depth++) {
      const rows = framesOf(locations.at(depth));
      for (let at = 0; at < rows.length; at++) {
        samples.pushFrame(rows[at] ?? 0);
      }
    }
    const place = { start, end: samples.framesPushed };
    withinLimit("stack-depth", place.end - start);
    withinLimit("frames-per-profile", place.end);
    const { thread, labelSet } = rowsOf(labels);
    samples.addSample(place, thread, labelSet, figuresOf(values, figures));
  }
  return samples;
}

/** The values of a sample by figure. Throws TidemarkError for a negative value. */
export function figuresOf(
  values: { at(index: number): number | undefined },
  figures: readonly (Figure | null)[],
): Record<Figure, number> {
  const sums = { liveBytes: 0, liveObjects: 0, allocatedBytes: 0, allocatedObjects: 0 };
  for (let at = 0; at < figures.length; at++) {
    const figure = figures[at] ?? null;
    const value = values.at(at) ?? 0;
    if (figure !== null) {
      if (value < 0) {
        malformed("a value is negative");
      }
      sums[figure] += value;
    }
  }
  return sums;
}

export function frameKindOf(file: string): FrameKind {
  return NATIVE_FILE.test(file) ? FrameKind.native : FrameKind.python;
}

/** By location: the rows of its frames, leaf first, which are added when a sample first has them. */
function frameRows(
  raw: RawProfile,
  samples: SampleCollector,
  text: (index: number) => string,
): (location: number) => readonly number[] {
  // Ids are usually counted from 1: an array is then much faster than a map. Others are kept in one anyway.
  const counted: (readonly number[] | undefined)[] = [];
  const others = new Map<number, readonly number[]>();
  return (location) => {
    const isCounted = location < MOST_COUNTED;
    let rows = isCounted ? counted[location] : others.get(location);
    if (rows === undefined) {
      const lines = raw.locations.get(location) ?? malformed("a location is not in its table");
      rows = lines.map(({ function: functionId, line }) => {
        const found = raw.functions.get(functionId) ?? malformed("a function is not in its table");
        const file = text(found.file);
        const kind = frameKindOf(file);
        return samples.addFrame({ function: text(found.name), file, line, kind });
      });
      if (isCounted) {
        counted[location] = rows;
      } else {
        others.set(location, rows);
      }
    }
    return rows;
  };
}

interface LabelRows {
  readonly thread: number;
  readonly labelSet: number;
}

/**
 * The thread's name apart from the other labels. Ids and times of single events are left out, because they would make
 * each sample unique.
 */
function labelRows(
  samples: SampleCollector,
  text: (index: number) => string,
): (labels: readonly RawLabel[]) => LabelRows {
  let none: LabelRows | null = null;
  return (raw) => {
    if (raw.length === 0 && none !== null) {
      return none;
    }
    const pairs = raw.map(({ key, text: value, number }) => ({
      key: text(key),
      value: value === 0 ? String(number) : text(value),
      isNumber: value === 0,
    }));
    const isThread = ({ key }: { key: string }) => key === "thread name" || key === "thread_name";
    const labels: Labels = pairs.flatMap(({ key, value, isNumber }) =>
      isNumber || key.startsWith("thread") || key.startsWith("span id") || value === ""
        ? []
        : [[key, value] as const],
    );
    const rows = {
      thread: samples.threadRow(pairs.find(isThread)?.value ?? ""),
      labelSet: samples.labelsRow(labels),
    };
    if (raw.length === 0) {
      none = rows;
    }
    return rows;
  };
}

function readProfile(bytes: Buffer): RawProfile {
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
        raw.types.push(readValueType(reader.message()));
        return raw.types.length <= MOST_VALUES || malformed("it has too many sample types");
      case 2:
        withinLimit("samples-per-profile", raw.samples.length + 1);
        raw.samples.push(reader.message());
        return true;
      case 4:
        readLocation(reader.message(), raw);
        return true;
      case 5:
        readFunction(reader.message(), raw);
        return true;
      case 6:
        raw.strings.push(reader.name());
        return true;
      case 9:
        raw.timeNanos = reader.signed();
        return true;
      case 10:
        raw.durationNanos = reader.signed();
        return true;
      case 11:
        raw.periodType = readValueType(reader.message());
        return true;
      case 12:
        raw.period = reader.signed();
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

function readValueType(message: WireReader): { type: number; unit: number } {
  const value = { type: 0, unit: 0 };
  readMessage(message, (field, _type, reader) => {
    if (field === 1) {
      value.type = reader.signed();
    } else if (field === 2) {
      value.unit = reader.signed();
    } else {
      return false;
    }
    return true;
  });
  return value;
}

function readSample(
  message: WireReader,
  locations: Numbers,
  values: Numbers,
  labels: RawLabel[],
): void {
  readMessage(message, (field, type, reader) => {
    if (field === 1) {
      pushNumbers(locations, type, reader, 1000);
      withinLimit("stack-depth", locations.length);
    } else if (field === 2) {
      pushSigned(values, type, reader);
    } else if (field === 3) {
      withinLimit("sample-labels", labels.length + 1);
      labels.push(readLabel(reader.message()));
    } else {
      return false;
    }
    return true;
  });
}

function readLabel(message: WireReader): RawLabel {
  const label = { key: 0, text: 0, number: 0 };
  readMessage(message, (field, _type, reader) => {
    if (field === 1) {
      label.key = reader.signed();
    } else if (field === 2) {
      label.text = reader.signed();
    } else if (field === 3) {
      label.number = reader.signed();
    } else {
      return false;
    }
    return true;
  });
  return label;
}

function readLocation(message: WireReader, raw: RawProfile): void {
  let id = 0;
  const lines: { function: number; line: number }[] = [];
  readMessage(message, (field, _type, reader) => {
    if (field === 1) {
      id = reader.unsigned();
    } else if (field === 4) {
      withinLimit("stack-depth", lines.push(readLine(reader.message())));
    } else {
      return false;
    }
    return true;
  });
  raw.locations.set(id, lines);
}

function readFunction(message: WireReader, raw: RawProfile): void {
  let id = 0;
  const found = { name: 0, file: 0 };
  readMessage(message, (field, _type, reader) => {
    if (field === 1) {
      id = reader.unsigned();
    } else if (field === 2) {
      found.name = reader.signed();
    } else if (field === 4) {
      found.file = reader.signed();
    } else {
      return false;
    }
    return true;
  });
  raw.functions.set(id, found);
}
