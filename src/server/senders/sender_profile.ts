/** Converts a received profile to a snapshot of a recording. */
import { mixHash, RowIndex } from "../../model/base/row_index.js";
import type { StackId } from "../../model/base/units.js";
import { foldSites } from "../../model/profile/fold_sites.js";
import { Domain, type ProfileSnapshot, type SiteTable } from "../../model/profile/profile.js";
import { newSiteTable } from "../../model/profile/site_columns.js";
import type { ProfileTablesBuilder } from "../../model/profile/tables_builder.js";
import { FIGURES, type ReceivedFrame, type ReceivedProfile } from "./formats/received_profile.js";

/** `builder` has one process, row 0; its threads are found by name in `threads`. */
export function profileSnapshotOf(
  profile: ReceivedProfile,
  builder: ProfileTablesBuilder,
  threads: Map<string, number>,
): ProfileSnapshot {
  const { samples, timeMs, durationMs } = profile;
  const sites = newSiteTable(samples.length, 1);
  const stackOf = stacksOf(builder);
  samples.forEach((sample, at) => {
    sites.stack[at] = stackOf(sample.frames);
    sites.thread[at] = threadRow(sample.thread, builder, threads);
    sites.label[at] = sample.labels.reduce(
      (parent, [key, value]) => builder.label(parent, builder.string(key), builder.string(value)),
      0,
    );
    sites.domain[at] = Domain.python;
    for (const figure of FIGURES) {
      sites[figure][at] = sample[figure];
    }
    sites.cohortBytes[at] = sample.liveBytes;
  });
  return {
    timeMs,
    durationMs,
    sites: folded(sites),
    files: newSiteTable(0, 1),
    copies: newSiteTable(0, 1),
    cohorts: [timeMs],
    peakMs: [0],
  };
}

function folded(sites: SiteTable): SiteTable {
  return foldSites([sites], 1);
}

/** Stacks that begin with the same list of frames are looked up once. */
function stacksOf(builder: ProfileTablesBuilder): (frames: readonly ReceivedFrame[]) => StackId {
  const ids = new Map<ReceivedFrame, number>();
  const known = new RowIndex();
  /** Ids of frames, leaf first. */
  const lists: (readonly number[])[] = [];
  const stacks: StackId[] = [];
  const frameId = (frame: ReceivedFrame) => {
    let id = ids.get(frame);
    if (id === undefined) {
      const name = builder.string(frame.function);
      id = builder.frame(name, builder.string(frame.file), frame.line, 0, frame.kind, 0);
      ids.set(frame, id);
    }
    return id;
  };
  return (frames) => {
    let hash = 0;
    const row = new Array<number>(frames.length);
    for (let at = 0; at < frames.length; at++) {
      const id = frameId(frames[at] as ReceivedFrame);
      row[at] = id;
      hash = mixHash(hash, id);
    }
    const found = known.find(hash, (index) => {
      const list = lists[index] ?? [];
      return list.length === row.length && list.every((id, at) => id === row[at]);
    });
    if (found >= 0) {
      return stacks[found] ?? 0;
    }
    const stack = row.reduceRight((parent, id) => builder.stack(parent, id), 0);
    known.add(hash, lists.push(row) - 1);
    stacks.push(stack);
    return stack;
  };
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
