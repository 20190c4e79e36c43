/** Files of speedscope's format (www.speedscope.app/file-format-schema.json) whose weights are bytes. */
import { shellWord } from "../../model/base/shell_word.js";
import { notOpened } from "../../model/errors/file_errors.js";
import { FrameKind } from "../../model/profile/profile.js";
import { type ForeignFrame, ImportedSites, UNKNOWN_DOMAIN } from "./imported_sites.js";
import {
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  type ImportOptions,
  NO_SERIES,
  type PlainValue,
  type ProfileImporter,
} from "./importer.js";
import {
  amountOf,
  type JsonObject,
  numberOf,
  objectOf,
  parseJson,
  requiredList,
  textOf,
} from "./json.js";

const BYTES: Readonly<Record<string, number>> = {
  bytes: 1,
  kilobytes: 1e3,
  megabytes: 1e6,
};
/** What the names of profiles say; memray names its by the moment. */
const NAMES: readonly (readonly [RegExp, PlainValue])[] = [
  [/peak|high.?water/i, "peak"],
  [/live|leak|inuse|in use/i, "live"],
  [/alloc/i, "allocated"],
];

export const speedscope: ProfileImporter = {
  name: "speedscope",
  description:
    "speedscope: profiles in bytes, as of memray transform; --value if its name does not show which",
  recognizes: ({ head, bytes }) =>
    /^\s*\{/.test(head) && bytes.includes("speedscope.app/file-format-schema.json"),
  read,
};

function read(file: ForeignFile, { value }: ImportOptions): ForeignRecording {
  const content = objectOf(parseJson(file));
  const frames = requiredList(objectOf(content.shared).frames, "table of frames").map(frameOf);
  const profiles = requiredList(content.profiles, "profile").map(objectOf);
  const sites = new ImportedSites({ pid: 0, command: [], python: "", startedMs: file.writtenMs });
  const known = new Set<PlainValue>();
  for (const profile of profiles) {
    const unit = BYTES[textOf(profile.unit)];
    if (unit !== undefined && textOf(profile.type) === "sampled") {
      const name = `${textOf(profile.name)} ${textOf(content.name)}`;
      const figure = value ?? NAMES.find(([pattern]) => pattern.test(name))?.[1];
      if (figure === undefined) {
        throw notOpened(
          file.path,
          "a speedscope profile in bytes, and its name does not show which bytes",
          `name them with --value live, peak or allocated: tidemark import ${shellWord(file.path)} --value live`,
        );
      }
      known.add(figure);
      addProfile(sites, { profile, frames, unit, figure });
    }
  }
  if (known.size === 0) {
    const units = [
      ...new Set(profiles.map(({ type, unit }) => `${textOf(type)}, ${textOf(unit)}`)),
    ];
    throw notOpened(
      file.path,
      `a speedscope file without a sampled profile in bytes (${units.join("; ") || "no profile"})`,
      "export the memory profile, not the CPU profile",
    );
  }
  const timeMs = file.writtenMs;
  return {
    tool: "speedscope",
    precision: "unknown",
    known: [...known],
    snapshots: [sites.snapshot(timeMs, 0, known.has("peak") ? timeMs : 0)],
    tables: sites.tables(),
    startedMs: timeMs,
    endedMs: timeMs,
    ...NO_SERIES,
    limits: [],
  };
}

interface SpeedscopeProfile {
  readonly profile: JsonObject;
  readonly frames: readonly ForeignFrame[];
  readonly unit: number;
  readonly figure: PlainValue;
}

/** A sample is a list of frames, root first, with one weight. */
function addProfile(
  sites: ImportedSites,
  { profile, frames, unit, figure }: SpeedscopeProfile,
): void {
  const weights = requiredList(profile.weights, "list of weights");
  const samples = requiredList(profile.samples, "list of samples");
  if (weights.length !== samples.length) {
    throw new ForeignFault(`it has ${samples.length} samples and ${weights.length} weights`);
  }
  samples.forEach((sample, index) => {
    const stack = requiredList(sample, "list of frames of a sample").map((value) => {
      const number = amountOf(value, "the number of a frame");
      const frame = frames[number];
      if (frame === undefined) {
        throw new ForeignFault(`a sample names frame ${number} of ${frames.length}`);
      }
      return frame;
    });
    const weight = amountOf(weights[index], "a weight") * unit;
    sites.add({ stack: sites.stack(stack), domain: UNKNOWN_DOMAIN }, { [figure]: weight });
  });
}

function frameOf(value: Parameters<typeof objectOf>[0]): ForeignFrame {
  const frame = objectOf(value);
  const file = textOf(frame.file);
  const line = numberOf(frame.line);
  const isNative = file === "" || line === 0;
  return {
    function: textOf(frame.name),
    file,
    line,
    kind: isNative ? FrameKind.native : FrameKind.python,
  };
}
