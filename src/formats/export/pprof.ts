/**
 * A profile in pprof's format: a gzipped protocol buffer with the four sample types of Go's heap profiles.
 * Source: https://github.com/google/pprof/blob/main/proto/profile.proto
 */

import { gzipSync } from "node:zlib";
import {
  Location,
  Mapping,
  Function as PprofFunction,
  Profile as PprofProfile,
  StringTable,
} from "pprof-format";
import {
  float64At,
  itemAt,
  uint8At,
  uint16At,
  uint32At,
  wholeNumbers,
} from "../../model/base/columns.js";
import type { FrameId, SiteIndex } from "../../model/base/units.js";
import { oneLine } from "../../model/errors/errors.js";
import { frameName, framesOf, labelPairs } from "../../model/profile/frame_text.js";
import { isUnknown, knowsValue } from "../../model/profile/imported.js";
import { FrameKind, type Profile, type SiteValue } from "../../model/profile/profile.js";
import type { ExportOptions, ProfileExporter } from "../format.js";

const SAMPLE_TYPES = [
  ["alloc_objects", "count", "allocatedObjects"],
  ["alloc_space", "bytes", "allocatedBytes"],
  ["inuse_objects", "count", "liveObjects"],
  ["inuse_space", "bytes", "liveBytes"],
] as const;
/** What `go tool pprof -comments` shows. */
const COMMENT = "written by Tidemark";
const DOMAIN_NAMES = ["python", "native", "mapped"] as const;

/** Each object file gets its own terabyte of address space, because its real address differs from process
 * to process. An address minus the start of its mapping is the address within the file. */
const OBJECT_SPACE = 2 ** 40;
/** Up to this many, every address is exact as a double. */
const MAX_OBJECTS = 4096;

export const pprof = {
  name: "pprof",
  extension: ".pb.gz",
  description: "a heap profile as Go writes it, for go tool pprof and Pyroscope",
  stdout: "unless terminal",
  mark: { head: /^\n/, text: COMMENT },
  kind: "profile",
  encode: toPprof,
} satisfies ProfileExporter;

/** The profile, compressed. Figures are rounded to whole bytes and objects; rows of zeros are omitted. */
function toPprof(profile: Profile, { imported }: Pick<ExportOptions, "imported"> = {}): Uint8Array {
  const types = SAMPLE_TYPES.filter(([, , figure]) => knowsValue(imported, figure));
  const strings = new StringTable();
  const value = (type: string, unit: string) => ({
    type: strings.dedup(type),
    unit: strings.dedup(unit),
  });
  const places = new Places(profile, strings);
  const encoded = new PprofProfile({
    stringTable: strings,
    sampleType: types.map(([type, unit]) => value(type, unit)),
    defaultSampleType: strings.dedup(types.at(-1)?.[0] ?? ""),
    periodType: value("space", "bytes"),
    period: Math.max(0, ...profile.processes.map((process) => Math.round(process.periodBytes))),
    timeNanos: BigInt(Math.round(profile.timeMs)) * 1_000_000n,
    durationNanos: BigInt(Math.round(profile.durationMs)) * 1_000_000n,
    comment: [strings.dedup(COMMENT)],
    sample: samplesOf(profile, places, strings, {
      imported,
      values: types.map(([, , figure]) => figure),
    }),
    mapping: places.mappings,
    location: places.locations,
    function: places.functions,
  });
  return gzipSync(encoded.encode());
}

interface Chosen extends Pick<ExportOptions, "imported"> {
  readonly values: readonly SiteValue[];
}

function samplesOf(profile: Profile, places: Places, strings: StringTable, chosen: Chosen) {
  const { sites } = profile;
  const samples = [];
  const columns = chosen.values.map((value) => wholeNumbers(sites[value]));
  for (let site = 0; site < sites.length; site++) {
    const values = columns.map((column) => float64At(column, site));
    if (values.some((value) => value > 0)) {
      samples.push({
        locationId: framesOf(profile, uint32At(sites.stack, site)).map((frame) =>
          places.location(frame),
        ),
        value: values,
        label: labelsOf(profile, site, strings, chosen),
      });
    }
  }
  return samples;
}

/** The site's labels, and who allocated. A label that the program sets takes precedence over one of our names. */
function labelsOf(profile: Profile, site: SiteIndex, strings: StringTable, { imported }: Chosen) {
  const { sites, processes, threads } = profile;
  const process = itemAt(processes, uint16At(sites.process, site));
  const pairs = new Map([
    [
      "process",
      oneLine(`${process.pid} ${process.command.join(" ")}`)
        .trim()
        .slice(0, 120),
    ],
    ["thread", threads[uint32At(sites.thread, site)]?.name ?? ""],
    ...(isUnknown(imported, "python")
      ? []
      : [["domain", DOMAIN_NAMES[uint8At(sites.domain, site)] ?? ""] as const]),
    ...labelPairs(profile, uint32At(sites.label, site)),
  ]);
  return Array.from(pairs, ([key, text]) => ({
    key: strings.dedup(key),
    str: strings.dedup(text),
  }));
}

/** Mappings, locations and functions, added as frames occur. Ids begin at 1. */
class Places {
  readonly mappings: Mapping[] = [];
  readonly locations: Location[] = [];
  readonly functions: PprofFunction[] = [];
  readonly #profile: Profile;
  readonly #strings: StringTable;
  readonly #locationIds = new Map<FrameId, number>();
  readonly #functionIds = new Map<string, number>();
  readonly #mappingIds = new Map<number, number>();

  constructor(profile: Profile, strings: StringTable) {
    this.#profile = profile;
    this.#strings = strings;
  }

  location(frame: FrameId): number {
    const known = this.#locationIds.get(frame);
    if (known !== undefined) {
      return known;
    }
    const { frames } = this.#profile;
    const id = this.locations.length + 1;
    const mappingId = frames.kind[frame] === FrameKind.native ? this.#mapping(frame) : 0;
    this.locations.push(
      new Location({
        id,
        mappingId,
        address: mappingId === 0 ? 0 : mappingId * OBJECT_SPACE + float64At(frames.address, frame),
        line: [{ functionId: this.#function(frame), line: uint32At(frames.line, frame) }],
      }),
    );
    this.#locationIds.set(frame, id);
    return id;
  }

  #function(frame: FrameId): number {
    const { frames, strings } = this.#profile;
    const name = frameName(this.#profile, frame);
    const file = itemAt(strings, uint32At(frames.file, frame));
    const startLine = uint32At(frames.firstLine, frame);
    const key = JSON.stringify([name, file, startLine]);
    let id = this.#functionIds.get(key);
    if (id === undefined) {
      id = this.functions.length + 1;
      const nameId = this.#strings.dedup(name);
      this.functions.push(
        new PprofFunction({
          id,
          name: nameId,
          systemName: nameId,
          filename: this.#strings.dedup(file),
          startLine,
        }),
      );
      this.#functionIds.set(key, id);
    }
    return id;
  }

  /** 0 if the frame's object has no mapping, because there are too many or the address is too large. */
  #mapping(frame: FrameId): number {
    const { frames, strings } = this.#profile;
    const file = uint32At(frames.file, frame);
    let id = this.#mappingIds.get(file);
    if (
      id === undefined &&
      this.mappings.length < MAX_OBJECTS &&
      float64At(frames.address, frame) < OBJECT_SPACE
    ) {
      id = this.mappings.length + 1;
      this.mappings.push(
        new Mapping({
          id,
          memoryStart: id * OBJECT_SPACE,
          memoryLimit: (id + 1) * OBJECT_SPACE,
          filename: this.#strings.dedup(itemAt(strings, file)),
          // The frames are symbolized already: pprof does not have to read the file.
          hasFunctions: true,
        }),
      );
      this.#mappingIds.set(file, id);
    }
    return id !== undefined && float64At(frames.address, frame) < OBJECT_SPACE ? id : 0;
  }
}
