import type { Millis, TimeMs } from "../model/base/units.js";
import {
  COPIES_DOMAIN,
  LIFETIME_BUCKETS,
  type Profile,
  type ProfileTables,
  type SiteTable,
} from "../model/profile/profile.js";
import { partTables } from "../model/profile/snapshot_tables.js";
import { checkIds, checkTable, demand, record } from "./batch_check.js";
import type { SampleBatch } from "./batches.js";

/** Threads and processes of a site that are missing from the dictionaries would crash a page. */
const SITE_COLUMNS = {
  stack: "u32",
  process: "u16",
  thread: "u32",
  label: "u32",
  domain: "u8",
  liveBytes: "f64",
  liveObjects: "f64",
  liveVariance: "f64",
  liveSamples: "u32",
  allocatedBytes: "f64",
  allocatedObjects: "f64",
  allocatedVariance: "f64",
  peakBytes: "f64",
  peakObjects: "f64",
  peakVariance: "f64",
} as const;

const FIGURES = [
  "liveBytes",
  "liveObjects",
  "liveVariance",
  "allocatedBytes",
  "allocatedObjects",
  "allocatedVariance",
  "peakBytes",
  "peakObjects",
  "peakVariance",
  "lifetimes",
  "cohortBytes",
] as const;

/** A profile from its samples and the dictionaries. Throws BatchError if they do not match. */
export function readSamples(
  value: unknown,
  tables: ProfileTables,
  snapshot: { readonly timeMs: TimeMs; readonly durationMs: Millis },
): Profile {
  const length = checkTable(value, SITE_COLUMNS, "samples");
  const batch = value as SampleBatch;
  const fields = record(value, "samples");
  checkTable({ list: fields.cohorts }, { list: "f64" }, "cohorts");
  checkTable({ list: fields.lifetimes }, { list: "f32" }, "lifetimes");
  checkTable({ list: fields.cohortBytes }, { list: "f64" }, "cohort bytes");
  const processCount = checkTable(
    { periodBytes: fields.periodBytes, peakMs: fields.peakMs },
    { periodBytes: "f64", peakMs: "f64" },
    "processes of samples",
  );
  demand(processCount <= tables.processes.length, "samples refer to more processes than exist");
  demand(batch.lifetimes.length === length * LIFETIME_BUCKETS, "lifetimes do not match the sites");
  demand(
    batch.cohortBytes.length === length * batch.cohorts.length,
    "cohorts do not match the sites",
  );
  checkIds(batch.stack, tables.stacks.length, "a site's stack");
  checkIds(batch.process, processCount, "a site's process");
  checkIds(batch.thread, tables.threads.length, "a site's thread");
  checkIds(batch.label, tables.labels.length, "a site's label");
  checkIds(batch.domain, COPIES_DOMAIN + 1, "a site's domain");
  for (const name of FIGURES) {
    demand(isFigure(batch[name]), `a site's ${name} is not a number`);
  }
  const { profile: _, periodBytes, peakMs, cohorts, ...columns } = batch;
  const table: SiteTable = { length, ...columns };
  return {
    ...tables,
    processes: tables.processes.map((process, i) => ({
      ...process,
      periodBytes: periodBytes[i] ?? 0,
    })),
    timeMs: snapshot.timeMs,
    durationMs: snapshot.durationMs,
    ...partTables(table, cohorts.length),
    cohorts: Array.from(cohorts),
    peakMs: Array.from(peakMs),
  };
}

/** A loop, because `every` takes as long as all else: there are 24 lifetimes for each site. */
function isFigure(column: Float64Array | Float32Array): boolean {
  for (let row = 0; row < column.length; row++) {
    const figure = column[row] ?? 0;
    if (!(figure >= 0 && figure < Number.POSITIVE_INFINITY)) {
      return false;
    }
  }
  return true;
}
