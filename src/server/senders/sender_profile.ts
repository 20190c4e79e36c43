/** Converts a received profile to a snapshot of a recording. */
import { addAt, float64At, itemAt, uint32At } from "../../model/base/columns.js";
import { mixHash, RowIndex } from "../../model/base/row_index.js";
import type { LabelId, StackId } from "../../model/base/units.js";
import { Domain, type ProfileSnapshot, type SiteTable } from "../../model/profile/profile.js";
import { newSiteTable, pickSites } from "../../model/profile/site_columns.js";
import type { ProfileTablesBuilder } from "../../model/profile/tables_builder.js";
import type { ReceivedProfile } from "./formats/received_profile.js";
import { FIGURES, type Labels, type ReceivedSamples } from "./formats/received_samples.js";

const NONE = 0xffff_ffff;

/**
 * `builder` has one process, row 0; its threads are found by name in `threads`. `stacks`: those of the sender's earlier
 * profiles in this stream, by the hash of their frames. New ones are added.
 */
export function profileSnapshotOf(
  profile: ReceivedProfile,
  builder: ProfileTablesBuilder,
  threads: Map<string, number>,
  stacks: RowIndex,
): ProfileSnapshot {
  const { samples, timeMs, durationMs } = profile;
  return {
    timeMs,
    durationMs,
    sites: sitesOf(samples, {
      stackOf: stacksOf(samples, builder, stacks),
      threadRows: samples.threads.map((name) => threadRow(name, builder, threads)),
      labelIds: samples.labelSets.map((labels) => labelId(labels, builder)),
    }),
    files: newSiteTable(0, 1),
    copies: newSiteTable(0, 1),
    cohorts: [timeMs],
    peakMs: [0],
  };
}

/** Samples of the same stack, thread and labels become one site. */
function sitesOf(
  samples: ReceivedSamples,
  rows: {
    readonly stackOf: (sample: number) => StackId;
    readonly threadRows: readonly number[];
    readonly labelIds: readonly LabelId[];
  },
): SiteTable {
  const sites = newSiteTable(samples.length, 1);
  const index = new RowIndex(samples.length);
  const siteOf = new Uint32Array(samples.length);
  let length = 0;
  let stack = 0;
  let thread = 0;
  let label = 0;
  const { stack: stacks, thread: threads, label: labels } = sites;
  const isSame = (row: number) =>
    stacks[row] === stack && threads[row] === thread && labels[row] === label;
  for (let sample = 0; sample < samples.length; sample++) {
    stack = rows.stackOf(sample);
    thread = itemAt(rows.threadRows, uint32At(samples.thread, sample));
    label = itemAt(rows.labelIds, uint32At(samples.labels, sample));
    const hash = mixHash(mixHash(stack, thread), label);
    let site = index.find(hash, isSame);
    if (site < 0) {
      site = length++;
      index.add(hash, site);
      stacks[site] = stack;
      threads[site] = thread;
      labels[site] = label;
    }
    siteOf[sample] = site;
  }
  for (const figure of FIGURES) {
    addUp(samples[figure], siteOf, sites[figure]);
  }
  sites.cohortBytes.set(sites.liveBytes);
  sites.domain.fill(Domain.python);
  return length === samples.length
    ? sites
    : pickSites(
        sites,
        Uint32Array.from({ length }, (_, site) => site),
        1,
      );
}

function addUp(values: Float64Array, siteOf: Uint32Array, sums: Float64Array): void {
  for (let sample = 0; sample < values.length; sample++) {
    addAt(sums, uint32At(siteOf, sample), float64At(values, sample));
  }
}

/** Most stacks are those of an earlier profile, and are found by their frames without the index of all stacks. */
function stacksOf(
  samples: ReceivedSamples,
  builder: ProfileTablesBuilder,
  known: RowIndex,
): (sample: number) => StackId {
  const { start, end, stackFrames, frames } = samples;
  const ids = new Uint32Array(frames.length).fill(NONE);
  const frameId = (row: number) => {
    const { function: name, file, line, kind } = itemAt(frames, row);
    const id = builder.frame(builder.string(name), builder.string(file), line, 0, kind, 0);
    ids[row] = id;
    return id;
  };
  let stackIds = new Uint32Array(64);
  return (sample) => {
    const first = uint32At(start, sample);
    const depth = uint32At(end, sample) - first;
    if (depth > stackIds.length) {
      stackIds = new Uint32Array(2 * depth);
    }
    let hash = 0;
    for (let at = 0; at < depth; at++) {
      const row = uint32At(stackFrames, first + at);
      const id = ids[row] === NONE ? frameId(row) : uint32At(ids, row);
      stackIds[at] = id;
      hash = mixHash(hash, id);
    }
    let stack = known.find(hash, (candidate) => builder.hasFrames(candidate, stackIds, depth));
    if (stack < 0) {
      stack = 0;
      for (let at = depth - 1; at >= 0; at--) {
        stack = builder.stack(stack, uint32At(stackIds, at));
      }
      known.add(hash, stack);
    }
    return stack;
  };
}

function labelId(labels: Labels, builder: ProfileTablesBuilder): LabelId {
  return labels.reduce(
    (parent, [key, value]) => builder.label(parent, builder.string(key), builder.string(value)),
    0,
  );
}

function threadRow(
  name: string,
  builder: ProfileTablesBuilder,
  threads: Map<string, number>,
): number {
  let row = threads.get(name);
  if (row === undefined) {
    row = builder.addThread({ process: 0, tid: threads.size, name, isMain: name === "MainThread" });
    threads.set(name, row);
  }
  return row;
}
