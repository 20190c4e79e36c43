/**
 * Heap profiles in pprof's format (proto/profile.proto): of Go, jemalloc, tcmalloc, Tidemark, and JAX's device
 * memory profile (`jax.profiler.save_device_memory_profile`).
 */
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { type Location, Profile, type Sample } from "pprof-format";
import { notOpened } from "../../model/errors/file_errors.js";
import {
  type ForeignFigures,
  type ForeignFrame,
  ImportedSites,
  nativeFrame,
  pythonFrame,
  UNKNOWN_DOMAIN,
} from "./imported_sites.js";
import {
  DEEPEST_STACK,
  ForeignExcess,
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  MOST_ROWS,
  NO_SERIES,
  type ProfileImporter,
  requireRoom,
} from "./importer.js";

/** Names of sample types by the figure they are: of Go, tcmalloc and Tidemark; `space` is JAX's. */
const TYPES: Readonly<Record<string, keyof ForeignFigures>> = {
  inuse_space: "live",
  inuse_objects: "liveObjects",
  space: "live",
  allocations: "liveObjects",
  peak_space: "peak",
  peak_objects: "peakObjects",
  alloc_space: "allocated",
  alloc_objects: "allocatedObjects",
};

export const pprof: ProfileImporter = {
  name: "pprof",
  description: "pprof: heap profiles (.pb.gz), and JAX's device memory profile",
  recognizes: ({ bytes }) =>
    // Field 1 or 11, a short message with a type of samples; no text begins like this.
    (bytes[0] === 0x0a || bytes[0] === 0x5a) && (bytes[1] ?? 255) < 16 && bytes[2] === 0x08,
  read,
};

function read(file: ForeignFile): ForeignRecording {
  const profile = decode(file.bytes);
  const strings = profile.stringTable.strings;
  const text = (index: number | bigint) => {
    const found = strings[Number(index)];
    if (found === undefined) {
      throw new ForeignFault(`the string ${index} is missing: it is cut off`);
    }
    return found;
  };
  const types = profile.sampleType.map(({ type }) => TYPES[text(type)]);
  const names = profile.sampleType.map(({ type, unit }) => `${text(type)} in ${text(unit)}`);
  if (!types.some((type) => type === "live" || type === "peak" || type === "allocated")) {
    throw notOpened(
      file.path,
      `a pprof profile of ${names.join(", ")}, which is not memory`,
      "import a heap profile",
    );
  }
  const durationMs = Number(profile.durationNanos) / 1e6;
  const written = Number(profile.timeNanos) / 1e6;
  const endedMs = written > 0 ? written + durationMs : file.writtenMs;
  const startedMs = endedMs - durationMs;
  const sites = new ImportedSites({ pid: 0, command: [], python: "", startedMs });
  const stacks = new PprofStacks(profile, text);
  for (const sample of profile.sample) {
    addSample(sites, sample, types, stacks);
  }
  const found = new Set(types);
  return {
    tool: "pprof",
    // JAX's buffers are exact; other profilers state their sampling period.
    precision: stacks.hasDevices ? "exact" : Number(profile.period) > 1 ? "sampled" : "unknown",
    known: [
      ...(["live", "peak", "allocated"] as const).filter((figure) => found.has(figure)),
      ...(found.has("liveObjects") || found.has("allocatedObjects") ? (["objects"] as const) : []),
      ...(written > 0 && durationMs > 0 ? (["time"] as const) : []),
    ],
    snapshots: [sites.snapshot(endedMs, durationMs, found.has("peak") ? endedMs : 0)],
    tables: sites.tables(),
    startedMs,
    endedMs,
    ...NO_SERIES,
    limits: stacks.hasDevices
      ? ["Memory is of JAX's devices, not of the process: tidemark summary --by device lists it."]
      : [],
  };
}

/** Larger profiles of messages of a few bytes would take a hundred times their size. */
const MOST_PROFILE_BYTES = 2 ** 27;

function decode(bytes: Buffer): Profile {
  if (bytes.length > MOST_PROFILE_BYTES) {
    throw new ForeignExcess("128 MiB of pprof");
  }
  requireFewMessages(bytes);
  try {
    return Profile.decode(bytes);
  } catch (error) {
    if (error instanceof RangeError && /size|length/.test(error.message)) {
      throw error;
    }
    throw new ForeignFault("it is not a complete pprof profile");
  }
}

/** Samples, locations, functions and strings are fields of the profile. Throws ForeignFault if one is cut off. */
function requireFewMessages(bytes: Buffer): void {
  const reader = new BinaryReader(bytes);
  try {
    for (let count = 0; reader.pos < reader.len; count++) {
      requireRoom(count, MOST_ROWS, "rows of pprof");
      const [field, type] = reader.tag();
      reader.skip(type, field);
    }
  } catch (error) {
    throw error instanceof ForeignExcess
      ? error
      : new ForeignFault("it is not a complete pprof profile");
  }
}

function addSample(
  sites: ImportedSites,
  sample: Sample,
  types: readonly (keyof ForeignFigures | undefined)[],
  stacks: PprofStacks,
): void {
  if (sample.value.length !== types.length) {
    throw new ForeignFault(`a sample has ${sample.value.length} values, not ${types.length}`);
  }
  const figures: Partial<Record<keyof ForeignFigures, number>> = {};
  types.forEach((type, index) => {
    if (type !== undefined) {
      figures[type] = Number(sample.value[index] ?? 0);
    }
  });
  const frames = stacks.framesOf(sample);
  const label = stacks.labelOf(sample);
  sites.add(
    {
      stack: sites.stack(frames.toReversed()),
      domain: UNKNOWN_DOMAIN,
      ...(label === null ? {} : { label: sites.label(label.key, label.value) }),
    },
    figures,
  );
}

/** "app.py", "<frozen runpy>", "<ipython-input-3-…>"; Go and C++ have names in such brackets only for "<autogenerated>". */
const PYTHON_FILE = /\.py$|^<(?!autogenerated>).+>$/;

type Text = (index: number | bigint) => string;

class PprofStacks {
  hasDevices = false;
  readonly #text: Text;
  readonly #frames = new Map<number, readonly ForeignFrame[]>();

  constructor(profile: Profile, text: Text) {
    this.#text = text;
    const functions = new Map(profile.function.map((row) => [Number(row.id), row]));
    const mappings = new Map(profile.mapping.map((row) => [Number(row.id), row]));
    for (const location of profile.location) {
      const frames = location.line.map(({ functionId, line }) => {
        const found = functions.get(Number(functionId));
        if (found === undefined && Number(functionId) !== 0) {
          throw new ForeignFault(`the function ${functionId} is missing: it is cut off`);
        }
        const [name, file] = [text(found?.name ?? 0), text(found?.filename ?? 0)];
        // JAX has the line of the caller in the function's start line only.
        const at = Number(line) || Number(found?.startLine ?? 0);
        return PYTHON_FILE.test(file) ? pythonFrame(name, file, at) : nativeFrame(name, file, at);
      });
      const object = text(mappings.get(Number(location.mappingId))?.filename ?? 0);
      this.#frames.set(
        Number(location.id),
        frames.length > 0 ? frames : [unnamed(location, object)],
      );
    }
  }

  /** Leaf first. */
  framesOf({ locationId }: Sample): ForeignFrame[] {
    return locationId.slice(0, DEEPEST_STACK).flatMap((id) => {
      const frames = this.#frames.get(Number(id));
      if (frames === undefined) {
        throw new ForeignFault(`a sample names location ${id}, which it does not contain`);
      }
      return frames;
    });
  }

  /** The device of JAX's buffers, or the first label that is a text. */
  labelOf({ label }: Sample): { key: string; value: string } | null {
    const texts = label
      .map(({ key, str }) => ({ key: this.#text(key), value: this.#text(str) }))
      .filter(({ value }) => value !== "");
    const device = texts.find(({ key }) => key === "device");
    this.hasDevices ||= device !== undefined;
    return device ?? texts[0] ?? null;
  }
}

function unnamed({ address }: Location, object: string): ForeignFrame {
  return nativeFrame(`0x${BigInt(address).toString(16)}`, object);
}
