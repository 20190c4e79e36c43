/**
 * The memory profile of TensorFlow's profiler, as its Memory Viewer downloads it (`memory_profile.json` of xprof and
 * tensorboard-plugin-profile; memory_profile.proto): for each allocator the blocks that were live at its peak.
 */
import { Domain } from "../../../model/profile/profile.js";
import { ImportedSites, nativeFrame } from "../imported_sites.js";
import {
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  NO_DURATION,
  NO_SERIES,
  type ProfileImporter,
} from "../importer.js";
import {
  amountOf,
  type Json,
  type JsonObject,
  listOf,
  objectOf,
  parseJson,
  textOf,
} from "../json.js";
import { scopesOf } from "./xspace.js";

export const tensorflowMemory: ProfileImporter = {
  name: "TensorFlow memory profile",
  description: "TensorFlow: memory_profile.json of its profiler",
  recognizes: ({ head }) => /^\s*\{\s*"memoryProfilePerAllocator"/.test(head),
  read,
};

function read(file: ForeignFile): ForeignRecording {
  const content = objectOf(parseJson(file));
  const allocators = objectOf(content.memoryProfilePerAllocator);
  if (Object.keys(allocators).length === 0) {
    throw new ForeignFault("it has no allocator");
  }
  const sites = new ImportedSites({
    pid: 0,
    command: [],
    python: "",
    startedMs: file.writtenMs,
  });
  for (const [allocator, profile] of Object.entries(allocators)) {
    addPeak(sites, allocator, objectOf(profile));
  }
  return {
    tool: "TensorFlow memory profile",
    precision: "exact",
    known: ["peak", "objects"],
    snapshots: [sites.snapshot(file.writtenMs, NO_DURATION, file.writtenMs)],
    tables: sites.tables(),
    startedMs: file.writtenMs,
    endedMs: file.writtenMs,
    ...NO_SERIES,
    limits: [
      "The file contains the blocks that were live at the peak of each allocator. The peaks of two allocators may be at different times.",
    ],
  };
}

/** An entry of `activeAllocations` is a block of `memoryProfileSnapshots` or of `specialAllocations`; -1: not of it. */
function addPeak(sites: ImportedSites, allocator: string, profile: JsonObject): void {
  const snapshots = listOf(profile.memoryProfileSnapshots);
  const special = listOf(profile.specialAllocations);
  for (const value of listOf(profile.activeAllocations)) {
    const active = objectOf(value);
    const snapshot = at(snapshots, active.snapshotIndex);
    const block = objectOf(
      snapshot === undefined
        ? at(special, active.specialIndex)
        : objectOf(snapshot).activityMetadata,
    );
    const count = Math.max(1, wholeNumber(active.numOccurrences, "numOccurrences"));
    const region = sites.label("region", textOf(block.regionType) || "unknown");
    const names = scopesOf(textOf(block.tfOpName) || "(outside operations)");
    sites.add(
      {
        stack: sites.stack(names.map((name) => nativeFrame(name, ""))),
        domain: Domain.native,
        label: sites.label("device", allocator, region),
      },
      { peak: count * wholeNumber(block.allocationBytes, "allocationBytes"), peakObjects: count },
    );
  }
}

/** Whole numbers of 64 bits are strings in the JSON of Protocol Buffers, and 0 is left out. Throws ForeignFault. */
function wholeNumber(value: Json | undefined, what: string): number {
  return amountOf(
    typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value,
    what,
    0,
  );
}

/** An index of 0 is left out of some files; -1 names no block. Throws ForeignFault for a block that is missing. */
function at(list: readonly Json[], index: Json | undefined): Json | undefined {
  if (Number(typeof index === "object" ? 0 : index) === -1) {
    return undefined;
  }
  const found = list[wholeNumber(index, "the number of a block")];
  if (found === undefined) {
    throw new ForeignFault("it names a block that it does not contain");
  }
  return found;
}
