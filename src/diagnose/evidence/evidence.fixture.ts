/**
 * Evidence for tests, written in a few lines:
 *
 *     minute 1                                   length of the window
 *     anonRssBytes 40 + 1/s                      MiB at the start, and the growth
 *     anonRssBytes 40 begins 1/s at 45s          the same, from a later time on
 *     threads 4 + 0.5/s                          figures other than bytes, unscaled
 *     site record keeps 1/s                      MiB per second, none of it freed
 *     site record begins 1/s at 45s              MiB per second from then on, none of it freed
 *     site cache fills 20 by 15s                 MiB, and the time when it is full
 *     site parse churns 5                        MiB of short-lived memory all the time
 *     site parse serves 5 + 0.5/s                MiB of short-lived memory, more and more of it
 *     site tables leaps 20 at 50s                MiB, all at once
 *     site arena pools 10 at 25s 45s             MiB at the first time, three times as much at each later one
 *     site buffer swells 1/s                     one block, repeatedly replaced by a larger one
 *     mapping open_part keeps 1/s                MiB of mapped files; same syntax as for a site
 *     mapping publish passes 1/s                 MiB per second, all of it unmapped at once
 *     child 43 anonRssBytes 20 + 0.5/s
 *     forked 43 10s                              time of the fork; default: the start
 *     holder record held=40 path=app>history type=list entries=900 bound=0 at=20s
 *     holder record held=40 path=app>history putter=keep callers=record,replay
 *     holder record held=40 path=app>history grow=yes   whether the lookup saw that entries grow; default: unknown
 *     holder record held=0 unreferenced=2               a lookup that found no holder; default: nothing refers to it
 *     holder polars.Frame library=yes held=40 path=app>frames      of a census type, not allocated by malloc
 * holder socket.socket made=serve held=40 path=app>pool       of open files, sockets or threads, and what
 * creates them
 *     collector off
 *     ledgers 3s 6s 12s 24s                      when ledgers and private memory were read; default: at every poll
 *     census app.Session 5 + 0.1/s               MiB of a type
 *     censuses 4s 30s                            when types were counted; default: every four seconds
 *
 * For a block that is replaced, the last `copied=3` snapshots contain both the old and the new block;
 * `beside=9000` small objects belong to the same site.
 * A site may have `domain=native`, `samples=4`, `objects=9000`, `error=3` (MiB, the standard error of live bytes),
 * `pid=43`, `own=no` (only library code), `imports=yes` and `file=/lib/torch/nn/functional.py`.
 * One that serves allocates in proportion to its live bytes; with `lifetime=longer`, always the same.
 */

import type { Millis, TimeMs } from "../../model/base/units.js";
import type { FrameJson } from "../../model/documents/documents.js";
import { handlesSite, librarySite, typeKey } from "../../model/profile/lookup_sites.js";
import type { Metric } from "../../model/profile/series.js";
import { LARGE_BLOCK_BYTES, type SiteHistories, type SiteHistory } from "../sites/site_history.js";
import type { CensusEvidence, Evidence, HolderEvidence, ProcessEvidence } from "./evidence.js";

const MIB = 2 ** 20;
export const FIXTURE_START_MS: TimeMs = 1_700_000_000_000;
const TARGET = 42;
const POLL_MS = 250;
const CENSUS_MS = 4000;
const COHORTS = 16;
const COUNTS = new Set<string>([
  "threads",
  "openFiles",
  "openSockets",
  "children",
  "endedChildren",
]);
const RARELY_READ = /^(?:ledger\..*|ussBytes|pssBytes)$/;
const DEVICE_COUNT = /^gpu\.\d+\.(?:outOfMemory|allocationRetries|fragmentationRatio)$/;

type Course = (ms: Millis) => number;

export function evidenceOf(text: string): Evidence {
  const lines = text
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([word]) => word !== "");
  const minutes = Number(lines.find(([word]) => word === "minute")?.[1] ?? 1);
  const spanMs = minutes * 60_000;
  const processes = new Map<number, Map<Metric, Course>>([[TARGET, new Map()]]);
  const sites: SiteHistory[] = [];
  const mappings: SiteHistory[] = [];
  const holders: HolderEvidence[] = [];
  const types: string[][] = [];
  const forkedMs = new Map<number, Millis>();
  let ledgersMs: readonly Millis[] | null = null;
  let censusesMs = Array.from({ length: Math.floor(spanMs / CENSUS_MS) }, (_, i) => i * CENSUS_MS);
  const collectors: NonNullable<Evidence["collectors"]>[number][] = [];
  for (const words of lines) {
    if (words[0] === "site") {
      sites.push(siteOf(words, spanMs));
    } else if (words[0] === "mapping") {
      mappings.push(siteOf([...words, "domain=files"], spanMs));
    } else if (words[0] === "holder") {
      holders.push(holderOf(words, sites, spanMs));
    } else if (words[0] === "collector") {
      const enabled = words[1] !== "off";
      collectors.push({ pid: TARGET, enabled, youngCount: 9000, youngThreshold: 700 });
    } else if (words[0] === "forked") {
      forkedMs.set(Number(words[1]), Number.parseFloat(words[2] as string) * 1000);
    } else if (words[0] === "ledgers") {
      ledgersMs = timesOf(words);
    } else if (words[0] === "censuses") {
      censusesMs = timesOf(words);
    } else if (words[0] === "census") {
      types.push(words.slice(1));
    } else if (words[0] !== "minute") {
      const [pid, rest] =
        words[0] === "child" ? [Number(words[1]), words.slice(2)] : [TARGET, words];
      const metrics = processes.get(pid) ?? new Map<Metric, Course>();
      processes.set(pid, metrics);
      metrics.set(rest[0] as Metric, courseOf(rest));
    }
  }
  const endMs = FIXTURE_START_MS + spanMs;
  return {
    target: {
      pid: TARGET,
      command: ["python", "app.py"],
      python: "3.11.7",
      startedMs: FIXTURE_START_MS,
    },
    window: { startMs: FIXTURE_START_MS, endMs },
    processes: [...processes].map(([pid, metrics]) => ({
      ...processOf(pid, metrics, spanMs, ledgersMs),
      startedMs: FIXTURE_START_MS + (forkedMs.get(pid) ?? 0),
    })),
    events: [],
    ...(sites.length > 0 ? { sites: historiesOf(sites, spanMs) } : {}),
    ...(mappings.length > 0 ? { mappings: historiesOf(mappings, spanMs) } : {}),
    ...(types.length > 0 ? { census: censusOf(types, censusesMs) } : {}),
    holders,
    collectors,
    limits: [],
  };
}

function historiesOf(sites: readonly SiteHistory[], spanMs: Millis): SiteHistories {
  return {
    snapshotTimes: snapshotTimes(spanMs),
    cohorts: cohorts(spanMs),
    sites: sites.filter((site) => !passes(site)),
    passing: sites.filter(passes),
    allocatedBytes: Float64Array.from(
      snapshotTimes(spanMs),
      (time, snapshot) =>
        time -
        FIXTURE_START_MS +
        sites.reduce((sum, { allocatedBytes }) => sum + (allocatedBytes[snapshot] as number), 0),
    ),
    files: sites.flatMap((site) => site.keptStacks.flatMap((s) => s.frames.map((f) => f.file))),
  };
}

function passes({ pid, liveBytes }: SiteHistory): boolean {
  return pid !== TARGET && (liveBytes.at(-1) ?? 0) === 0;
}

/** "ledgers 3s 6s" */
function timesOf(words: readonly string[]): Millis[] {
  return words.slice(1).map((word) => Number.parseFloat(word) * 1000);
}

function censusOf(types: readonly string[][], times: readonly Millis[]): CensusEvidence {
  return {
    pid: TARGET,
    timesMs: times.map((ms) => FIXTURE_START_MS + ms),
    types: types.map((words) => {
      const bytes = times.map(courseOf(words));
      return {
        type: words[0] as string,
        bytes,
        objects: bytes.map((own) => Math.round(own / 1000)),
      };
    }),
  };
}

/** Repeatable noise between -1 and 1. */
export function noise(seed: number): number {
  const value = Math.sin(seed * 12.9898 + 78.233) * 43758.5453;
  return 2 * (value - Math.floor(value)) - 1;
}

/**
 * "anonRssBytes 40 + 1/s", "vmsBytes 500 steps 100 at 20s", "app.Row 1 fills 20 by 40s" and continues at 5 % of
 * that rate, "app.Job 1 batches 20 each 15s"
 */
function courseOf([metric, start, how, by, , at]: readonly string[]): Course {
  const unit = COUNTS.has(metric as string) || DEVICE_COUNT.test(metric as string) ? 1 : MIB;
  const from = Number(start) * unit;
  if (how === "+") {
    const rate = (Number.parseFloat(by as string) * unit) / 1000;
    return (ms) => from + rate * ms;
  }
  if (how === "begins") {
    const rate = (Number.parseFloat(by as string) * unit) / 1000;
    return (ms) => from + rate * Math.max(0, ms - Number.parseFloat(at as string) * 1000);
  }
  if (how === "steps") {
    const when = Number.parseFloat(at as string) * 1000;
    return (ms) => from + (ms >= when ? Number(by) * unit : 0);
  }
  if (how === "fills") {
    const full = Number.parseFloat(at as string) * 1000;
    return (ms) => from + Number(by) * unit * Math.min(ms / full, 1 + (0.05 * (ms - full)) / full);
  }
  if (how === "batches") {
    const period = Number.parseFloat(at as string) * 1000;
    return (ms) => from + (Number(by) * unit * (ms % period)) / period;
  }
  return (ms) => from + noise(ms) * 0.001 * from;
}

function processOf(
  pid: number,
  metrics: ReadonlyMap<Metric, Course>,
  spanMs: Millis,
  ledgersMs: readonly Millis[] | null,
): Omit<ProcessEvidence, "startedMs"> {
  const wasRead = (metric: Metric, ms: Millis) =>
    ledgersMs === null || !RARELY_READ.test(metric) || ledgersMs.includes(ms);
  const times = Array.from({ length: Math.floor(spanMs / POLL_MS) }, (_, i) => i * POLL_MS);
  const withDefault = new Map(metrics);
  const anon = metrics.get("anonRssBytes") ?? (() => 50 * MIB);
  withDefault.set("anonRssBytes", anon);
  withDefault.set("rssBytes", metrics.get("rssBytes") ?? anon);
  return {
    pid,
    parentPid: pid === TARGET ? 1 : TARGET,
    command: ["python", "app.py"],
    python: "3.11.7",
    profiled: true,
    endedMs: null,
    series: {
      pid,
      timesMs: Float64Array.from(times, (ms) => FIXTURE_START_MS + ms),
      values: new Map(
        [...withDefault].map(([metric, course]) => [
          metric,
          Float64Array.from(times, (ms) => (wasRead(metric, ms) ? course(ms) : Number.NaN)),
        ]),
      ),
    },
  };
}

function snapshotTimes(spanMs: Millis): TimeMs[] {
  return Array.from({ length: 24 }, (_, i) => FIXTURE_START_MS + ((i + 1) * spanMs) / 24);
}

function cohorts(spanMs: Millis): TimeMs[] {
  return Array.from({ length: COHORTS }, (_, i) => FIXTURE_START_MS + ((i + 1) * spanMs) / COHORTS);
}

function siteOf(words: readonly string[], spanMs: Millis): SiteHistory {
  const [, name, how, amount] = words as [string, string, string, string];
  const options = new Map(words.map((word) => word.split("=", 2) as [string, string]));
  const bytes = Number.parseFloat(amount) * MIB;
  const fullMs = Number.parseFloat(words[5] ?? "0") * 1000;
  const poolTimes = words
    .filter((word) => /^\d+s$/.test(word))
    .map((word) => Number.parseFloat(word) * 1000);
  const live: Course = (ms) =>
    how === "keeps" || how === "swells"
      ? (bytes * ms) / 1000
      : how === "begins"
        ? (bytes * Math.max(0, ms - fullMs)) / 1000
        : how === "fills"
          ? bytes * Math.min(1, ms / fullMs)
          : how === "leaps"
            ? (bytes * ms) / spanMs / 10 + (ms >= fullMs ? bytes : 0)
            : how === "pools"
              ? poolTimes.reduce((sum, time, n) => sum + (time <= ms ? bytes * 3 ** n : 0), 0)
              : how === "passes"
                ? 0
                : how === "serves"
                  ? bytes + (MIB * Number.parseFloat(words[5] as string) * ms) / 1000
                  : bytes * (0.8 + 0.2 * noise(ms));
  const allocated: Course = (ms) =>
    how === "passes"
      ? (bytes * ms) / 1000
      : how === "serves" && options.get("lifetime") !== "longer"
        ? ((bytes + live(ms)) / 2) * ms
        : 2 * ms;
  const width = spanMs / COHORTS;
  const cohortBytes = Float64Array.from({ length: COHORTS }, (_, i) =>
    how === "churns" || how === "serves" || how === "swells"
      ? i === COHORTS - 1
        ? live(spanMs)
        : 0
      : live((i + 1) * width) - live(i * width),
  );
  const domain = (options.get("domain") ?? "python") as SiteHistory["domain"];
  const pid = Number(options.get("pid") ?? TARGET);
  const frame = frameOf(name);
  const library = options.get("file");
  const operations = library === undefined ? [] : ["linear", "relu"];
  const stacks = [
    [frame],
    ...operations.map((operation, i) => [
      { function: operation, file: library as string, line: i + 1, kind: "python" as const },
      frame,
    ]),
  ];
  const times = snapshotTimes(spanMs);
  const objects = Number(options.get("objects") ?? 1000);
  const copied = Number(options.get("copied") ?? 0);
  const copies = (snapshot: number) => (snapshot >= times.length - copied ? 2 : 1);
  const liveBytes = Float64Array.from(
    times,
    (time, snapshot) => copies(snapshot) * live(time - FIXTURE_START_MS),
  );
  const liveObjects = Float64Array.from(times, (time, snapshot) =>
    how === "swells"
      ? copies(snapshot)
      : (copies(snapshot) * objects * live(time - FIXTURE_START_MS)) / Math.max(1, live(spanMs)),
  );
  const isLarge = (snapshot: number) =>
    (liveBytes[snapshot] as number) >=
    LARGE_BLOCK_BYTES * Math.max(1, liveObjects[snapshot] as number);
  // As if it had its own stack within the site.
  const beside = Number(options.get("beside") ?? 0);
  return {
    key: `${pid} ${domain} ${name}`,
    place: name,
    own: options.get("own") !== "no",
    imports: options.get("imports") === "yes",
    pid,
    domain,
    liveBytes,
    allocatedBytes: Float64Array.from(times, (time) => allocated(time - FIXTURE_START_MS)),
    objects: liveObjects.map((count) => count + beside),
    largeBytes: liveBytes.map((live, snapshot) => (isLarge(snapshot) ? live : 0)),
    liveObjects: beside + (how === "swells" ? copies(times.length - 1) : objects),
    liveSamples: how === "swells" ? 1 : Number(options.get("samples") ?? 400),
    standardErrorBytes: options.has("error")
      ? Number(options.get("error")) * MIB
      : live(spanMs) / 20,
    cohortBytes,
    keptStacks: stacks.map((frames, id) => ({ id, frames, share: 1 / stacks.length })),
  };
}

function frameOf(name: string): FrameJson {
  return { function: name, file: "/srv/app.py", line: 7, kind: "python" };
}

function holderOf(
  words: readonly string[],
  sites: readonly SiteHistory[],
  spanMs: Millis,
): HolderEvidence {
  const options = new Map(words.map((word) => word.split("=", 2) as [string, string]));
  const number = (name: string) => Number(options.get(name) ?? 0);
  const path = options.get("path")?.split(">") ?? [];
  const foundMs =
    FIXTURE_START_MS +
    (options.has("at") ? Number.parseFloat(options.get("at") as string) * 1000 : spanMs);
  return {
    pid: TARGET,
    site:
      sites.find(({ key }) => key.endsWith(` ${words[1]}`))?.key ??
      (options.has("library") ? librarySite : options.has("made") ? handlesSite : typeKey)(
        TARGET,
        words[1] as string,
      ),
    foundMs,
    madeAt: options.get("made")?.split(",").map(frameOf) ?? [],
    entriesGrow: options.has("grow") ? options.get("grow") === "yes" : null,
    callers: options.get("callers")?.split(",") ?? [],
    looked: 40,
    held: number("held"),
    garbage: number("garbage"),
    graph: number("graph"),
    unreferenced: options.has("unreferenced")
      ? number("unreferenced")
      : 40 - number("held") - number("garbage") - number("graph"),
    holder:
      path.length === 0
        ? null
        : {
            path,
            type: options.get("type") ?? "dict",
            retainedBytes: Number(options.get("retained") ?? 60) * MIB,
            entries: number("entries"),
            atMs: foundMs,
            ...(options.has("putter")
              ? { putters: [frameOf(options.get("putter") as string)] }
              : {}),
          },
    bound: number("bound") || null,
  };
}
