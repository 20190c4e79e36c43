/**
 * Recordings of the demo fleet, as the recorders of its instances would have written them. The server takes them in
 * as it takes real ones.
 *
 *   service ── instance ── a process for each release, or until the kernel kills it at its limit ── a recording
 *
 * The same moment gives the same fleet: what looks like chance comes from {@link unitOf}.
 */
import { createHash } from "node:crypto";
import { SiteHistoryBuilder } from "../../diagnose/index.js";
import type { Bytes, Millis, Pid, StackId, TimeMs } from "../../model/base/units.js";
import { Domain, FrameKind, type SiteTable } from "../../model/profile/profile.js";
import { ledgerMetric } from "../../model/profile/series.js";
import { newSiteTable } from "../../model/profile/site_columns.js";
import { ProfileTablesBuilder } from "../../model/profile/tables_builder.js";
import type { ServiceIdentity } from "../../model/wire/identity.js";
import { KeptFrames } from "../../recording/frames/kept_frames.js";
import { type MetricRow, RecordingWriter } from "../../recording/writer.js";
import { loadAt, loadBetween } from "./requests.js";
import type { DemoRelease, DemoService, DemoSite } from "./services.js";

const MIB: Bytes = 2 ** 20;
const HOUR: Millis = 3_600_000;
const DAY: Millis = 24 * HOUR;
const WINDOW: Millis = 30 * DAY;
const PERIOD: Bytes = 64 << 10;
/** Shorter than the five minutes for which a reading is valid in the store. */
const POLL_MS: Millis = 290_000;
/** The process's own RSS, which charts do not show, and the ledger are read more rarely. */
const RSS_EVERY = 4;
const LEDGER_EVERY = 36;
/** What a visitor looks at first has more points. */
const RECENT_MS: Millis = 2 * HOUR;
const RECENT_POLL_MS: Millis = 60_000;
const FIRST_PROFILE_MS: Millis = 5 * 60_000;
/** Each profile comes when the process is this share older, as the recorder's do, but at least every four hours. */
const PROFILE_SHARE = 0.12;
const PROFILE_MS: Millis = 4 * HOUR;
const SLICES = 16;
/** Imports and the first requests. */
const SETTLED_MS: Millis = 3 * 60_000;
const FILL_MS: Millis = 9 * HOUR;
/** Mean time that an entry stays in a full cache, and that a request's memory lives. */
const CACHED_MS: Millis = 20 * HOUR;
const REQUEST_MS: Millis = 20_000;
/** Interpreter, libraries and thread stacks. */
const FIXED_BYTES: Bytes = 46 * MIB;
/** A pod that is deployed starts after the one before it. */
const ROLLOUT_MS: Millis = 90_000;
const NODES = 6;

/** One process of an instance. */
export interface Life {
  readonly service: DemoService;
  readonly release: DemoRelease;
  readonly instance: number;
  readonly startMs: TimeMs;
  /** null: it runs. */
  readonly end: { readonly timeMs: TimeMs; readonly killed: boolean } | null;
}

/** The processes of a service in the 30 days before `nowMs`, those that run first. */
export function livesOf(service: DemoService, nowMs: TimeMs): Life[] {
  const lives: Life[] = [];
  for (let instance = 0; instance < service.instances; instance++) {
    service.releases.forEach((release, index) => {
      const deployMs = (at: DemoRelease) => nowMs - at.daysAgo * DAY + instance * ROLLOUT_MS;
      const next = service.releases[index + 1];
      const replacedMs = next === undefined ? null : deployMs(next);
      let startMs = Math.max(deployMs(release), nowMs - WINDOW + instance * ROLLOUT_MS);
      while (replacedMs === null ? startMs < nowMs : startMs < replacedMs) {
        const life = { service, release, instance, startMs };
        const killedMs = startMs + ageAtLimit(life);
        const killed = killedMs < (replacedMs ?? nowMs);
        const endMs = killed ? killedMs : replacedMs;
        lives.push({ ...life, end: endMs === null ? null : { timeMs: endMs, killed } });
        if (!killed) {
          break;
        }
        startMs = killedMs + ROLLOUT_MS;
      }
    });
  }
  return lives.sort((a, b) => (b.end?.timeMs ?? nowMs) - (a.end?.timeMs ?? nowMs));
}

/** Writes the recording of one process. */
export class DemoRecorder {
  readonly #life: Life;
  readonly #frames = new KeptFrames();
  readonly #writer = new RecordingWriter(this.#frames);
  readonly #builder = new ProfileTablesBuilder();
  readonly #stacks: readonly StackId[];
  readonly #pid: Pid;
  readonly #pollMs: Millis;

  /** `pollMs`: the time between two readings, except the most recent ones. */
  constructor(life: Life, pollMs: Millis = POLL_MS) {
    this.#life = life;
    this.#pollMs = pollMs;
    this.#pid = 100 + Math.floor(unitOf(seedOf(life), "pid") * 30_000);
    const process = this.#builder.addProcess({
      pid: this.#pid,
      parentPid: 1,
      command: life.service.command,
      python: "3.12.8",
      startedMs: life.startMs,
      periodBytes: PERIOD,
    });
    this.#builder.addThread({ process, tid: this.#pid, name: "MainThread", isMain: true });
    this.#stacks = life.release.sites.map((site) => this.#stackOf(site));
  }

  /** The recording so far: up to `nowMs`, or to the end of the process. */
  begin(nowMs: TimeMs): Buffer {
    const { service, startMs, end } = this.#life;
    const untilMs = end?.timeMs ?? nowMs;
    const row = {
      ...{ series: 0, pid: this.#pid, parentPid: 1, command: service.command },
      ...{ python: "3.12.8", profiled: true, startedMs: startMs },
    };
    this.#writer.begin({
      tidemarkVersion: "demo",
      command: service.command,
      pid: this.#pid,
      startedMs: startMs,
      host: `node-${1 + Math.floor(unitOf(seedOf(this.#life), "node") * NODES)}`,
      kernel: "6.1.0",
      runId: digest(seedOf(this.#life)).slice(0, 16),
      periodBytes: PERIOD,
      keeper: null,
      recorder: { pid: 0, startTicks: 0 },
      identity: identityOf(this.#life),
    });
    this.#writer.processes(startMs, [{ ...row, endedMs: null }]);
    this.#recordCourse(untilMs);
    if (end === null) {
      return this.#frames.take();
    }
    this.#writer.processes(end.timeMs, [{ ...row, endedMs: end.timeMs }]);
    if (end.killed) {
      this.#recordKill(end.timeMs);
    }
    const peak = Math.max(rssOf(this.#life, untilMs), service.limitBytes * (end.killed ? 0.98 : 0));
    this.#writer.end({
      timeMs: end.timeMs,
      exitCode: end.killed ? null : 0,
      signal: end.killed ? 9 : null,
      maxRssBytes: peak,
      userMs: (untilMs - startMs) * 0.1,
      systemMs: (untilMs - startMs) * 0.01,
    });
    return this.#frames.take();
  }

  /** What a running process adds at `nowMs`. */
  next(nowMs: TimeMs): Buffer {
    this.#writer.metrics(nowMs, this.#poll(nowMs, 0));
    return this.#frames.take();
  }

  /** Polls and profiles by their times: the frames of a recording are in order. */
  #recordCourse(untilMs: TimeMs): void {
    const { startMs } = this.#life;
    const due: Millis[] = [];
    for (let ageMs = FIRST_PROFILE_MS; ageMs < untilMs - startMs - 1; ) {
      due.push(ageMs);
      ageMs += Math.min(PROFILE_MS, PROFILE_SHARE * ageMs);
    }
    due.push(untilMs - startMs - 1);
    let rows: MetricRow[] = [];
    let polls = 0;
    let newestMs = startMs;
    const recentMs = this.#life.end === null ? untilMs - RECENT_MS : Number.POSITIVE_INFINITY;
    for (
      let timeMs = startMs + 1_000;
      timeMs < untilMs;
      timeMs += timeMs < recentMs ? this.#pollMs : RECENT_POLL_MS
    ) {
      while (startMs + (due[0] ?? Number.POSITIVE_INFINITY) <= timeMs) {
        this.#writer.metrics(newestMs, rows);
        rows = [];
        this.#profile(startMs + (due.shift() as Millis), "poll");
      }
      rows.push(...this.#poll(timeMs, polls));
      newestMs = timeMs;
      polls += 1;
    }
    this.#writer.metrics(newestMs, rows);
    for (const ageMs of due) {
      this.#profile(startMs + ageMs, this.#life.end === null ? "poll" : "end");
    }
    this.#findHolders(untilMs);
  }

  /** `count`: of the polls before it. */
  #poll(timeMs: TimeMs, count: number): MetricRow[] {
    const { service } = this.#life;
    const rssBytes = rssOf(this.#life, timeMs);
    const shared = 11 * MIB;
    const metric = (name: MetricRow["metric"], value: number) => ({
      ...{ timeMs, series: 0, metric: name, value: Math.round(value) },
    });
    const live = this.#life.release.sites.map((site) => ({
      site,
      bytes: liveOf(site, this.#life, timeMs),
    }));
    const sumOf = (native: boolean) =>
      live
        .filter(({ site }) => (site.native ?? false) === native)
        .reduce((sum, { bytes }) => sum + bytes, 0);
    const usage = [
      metric("treeRssBytes", rssBytes),
      metric("liveBytes", sumOf(false) + sumOf(true)),
    ];
    if (count % RSS_EVERY === 1) {
      usage.push(metric("rssBytes", rssBytes));
    }
    if (count % LEDGER_EVERY !== 1) {
      return usage;
    }
    const parts = [
      ["python.used", sumOf(false)],
      ["malloc.used", sumOf(true) + 6 * MIB],
      ["libraries", 24 * MIB],
      ["stacks", 1 * MIB],
      ["python.free", (rssBytes - FIXED_BYTES) * 0.04],
    ] as const;
    const rest = rssBytes - parts.reduce((sum, [, bytes]) => sum + bytes, 0);
    return [
      ...usage,
      metric("pssBytes", rssBytes - shared),
      metric("treePssBytes", rssBytes - shared),
      metric("anonRssBytes", rssBytes - 24 * MIB),
      metric("cgroupUsageBytes", rssBytes + 6 * MIB),
      metric("cgroupLimitBytes", service.limitBytes),
      metric("threads", 5),
      metric("openFiles", 24 + 30 * loadAt(timeMs)),
      ...parts.map(([part, bytes]) => metric(ledgerMetric(part), bytes)),
      metric(ledgerMetric("malloc.free"), Math.max(0, rest)),
    ];
  }

  #profile(timeMs: TimeMs, kind: "poll" | "end"): void {
    const { startMs, release } = this.#life;
    const cohorts = slicesOf(startMs, timeMs);
    const sites = newSiteTable(release.sites.length, cohorts.length);
    let samples = 0;
    release.sites.forEach((site, row) => {
      this.#fill(sites, row, site, cohorts, timeMs);
      samples += sites.liveSamples[row] ?? 0;
    });
    this.#writer.snapshot(
      this.#builder.tables(),
      {
        timeMs,
        durationMs: timeMs - startMs,
        sites,
        files: newSiteTable(0, cohorts.length),
        copies: newSiteTable(0, cohorts.length),
        cohorts,
        peakMs: [timeMs],
      },
      {
        kind,
        agent: { samples, lost: 0, cpuMs: (timeMs - startMs) * 1e-4, periodBytes: PERIOD },
      },
    );
  }

  #fill(
    sites: SiteTable,
    row: number,
    site: DemoSite,
    cohorts: readonly TimeMs[],
    timeMs: TimeMs,
  ): void {
    const ageMs = timeMs - this.#life.startMs;
    const bytes = liveOf(site, this.#life, timeMs);
    const allocated = allocatedOf(site, this.#life, timeMs, bytes);
    sites.stack[row] = this.#stacks[row] ?? 0;
    sites.domain[row] = site.native === true ? Domain.native : Domain.python;
    sites.liveBytes[row] = bytes;
    sites.liveObjects[row] = bytes / site.objectBytes;
    sites.liveVariance[row] = bytes * PERIOD;
    sites.liveSamples[row] = Math.round(bytes / PERIOD);
    sites.allocatedBytes[row] = allocated;
    sites.allocatedObjects[row] = allocated / site.objectBytes;
    sites.allocatedVariance[row] = allocated * PERIOD;
    sites.peakBytes[row] = bytes;
    sites.peakObjects[row] = bytes / site.objectBytes;
    sites.peakVariance[row] = bytes * PERIOD;
    cohorts.forEach((upperMs, slice) => {
      const lowerMs = cohorts[slice - 1] ?? this.#life.startMs;
      const share =
        olderThan(site, timeMs - upperMs, ageMs) - olderThan(site, timeMs - lowerMs, ageMs);
      sites.cohortBytes[row * cohorts.length + slice] = bytes * share;
    });
  }

  /** What a lookup in the process would have found: who keeps the objects that leak. */
  #findHolders(timeMs: TimeMs): void {
    const tables = this.#builder.tables();
    const histories = new SiteHistoryBuilder();
    const rows = this.#life.release.sites.flatMap((site, row) => {
      if (site.holder === undefined) {
        return [];
      }
      const domain = site.native === true ? Domain.native : Domain.python;
      const found = {
        site: histories.keyOf(tables, this.#pid, domain, this.#stacks[row] ?? 0),
        ...{ madeAt: null, looked: 48, garbage: 0, graph: 0, bound: 0, putters: [] },
      };
      if (site.holder === "none") {
        return [{ ...found, held: 0, path: [], type: "", retainedBytes: 0, entries: 0 }];
      }
      const retainedBytes = liveOf(site, this.#life, timeMs);
      const entries = Math.round(retainedBytes / site.objectBytes);
      return [{ ...found, ...site.holder, held: 47, retainedBytes, entries }];
    });
    if (rows.length > 0) {
      this.#writer.holders(timeMs, { pid: this.#pid, collector: null, rows });
    }
  }

  #recordKill(timeMs: TimeMs): void {
    const { limitBytes } = this.#life.service;
    this.#writer.events(timeMs, [
      { timeMs, pid: this.#pid, kind: "oom-kill", detail: "by the limit of its control group" },
    ]);
    this.#writer.memoryEnds(timeMs, [
      {
        ...{ pid: this.#pid, timeMs, cause: "cgroup", limitBytes, usedBytes: limitBytes },
        ...{ rssBytes: rssOf(this.#life, timeMs), limit: "/kubepods/pod", evidence: [] },
      },
    ]);
  }

  #stackOf({ stack, native }: DemoSite): StackId {
    return stack.reduce((parent, [call, file, line], depth) => {
      const kind =
        native === true && depth === stack.length - 1 ? FrameKind.native : FrameKind.python;
      const first = Math.max(1, line - 9);
      const names = [this.#builder.string(call), this.#builder.string(file)] as const;
      const place = kind === FrameKind.native ? ([0, 0] as const) : ([line, first] as const);
      const address = kind === FrameKind.native ? 0x4a10 : 0;
      return this.#builder.stack(parent, this.#builder.frame(...names, ...place, kind, address));
    }, 0);
  }
}

/** Upper bounds of the allocation-time slices: equal parts of the process's age. */
function slicesOf(startMs: TimeMs, timeMs: TimeMs): TimeMs[] {
  const width = (timeMs + 1 - startMs) / SLICES;
  return Array.from({ length: SLICES }, (_, slice) =>
    slice === SLICES - 1 ? timeMs + 1 : startMs + (slice + 1) * width,
  );
}

/** Share of a site's live bytes that are older than `ms`, of a process of age `ageMs`. */
function olderThan({ course }: DemoSite, ms: Millis, ageMs: Millis): number {
  if (ms <= 0) {
    return 1;
  }
  if (ms >= ageMs) {
    return 0;
  }
  switch (course) {
    case "settled":
      return 1;
    case "leaks":
      return 1 - ms / ageMs;
    case "fills":
      return Math.exp(-ms / CACHED_MS);
    case "load":
      return Math.exp(-ms / REQUEST_MS);
  }
}

function allocatedOf(
  { course, bytes }: DemoSite,
  { startMs }: Life,
  timeMs: TimeMs,
  live: Bytes,
): Bytes {
  switch (course) {
    case "settled":
    case "leaks":
      return live;
    case "fills":
      return live + (bytes * (timeMs - startMs)) / CACHED_MS;
    case "load":
      return live + (bytes * loadBetween(startMs, timeMs)) / REQUEST_MS;
  }
}

function liveOf({ course, bytes }: DemoSite, life: Omit<Life, "end">, timeMs: TimeMs): Bytes {
  const ageMs = Math.max(0, timeMs - life.startMs);
  const seed = seedOf(life);
  switch (course) {
    case "settled":
      return bytes * Math.min(1, ageMs / SETTLED_MS);
    case "fills":
      return bytes * (1 - Math.exp(-ageMs / FILL_MS)) * (0.97 + 0.06 * unitOf(seed, "size"));
    case "load":
      return (
        bytes * loadAt(timeMs) * (0.85 + 0.3 * unitOf(seed, String(Math.floor(timeMs / POLL_MS))))
      );
    case "leaks":
      return bytes * (ageMs / DAY) * (0.85 + 0.3 * unitOf(seed, "rate"));
  }
}

function rssOf(life: Omit<Life, "end">, timeMs: TimeMs): Bytes {
  const live = life.release.sites.reduce((sum, site) => sum + liveOf(site, life, timeMs), 0);
  return Math.round(FIXED_BYTES + live * 1.07);
}

/** Age at which the process reaches its limit; infinite if it does not. */
function ageAtLimit(life: Omit<Life, "end">): Millis {
  for (let ageMs = HOUR; ageMs <= WINDOW; ageMs += HOUR) {
    if (rssOf(life, life.startMs + ageMs) >= life.service.limitBytes * 0.985) {
      return ageMs;
    }
  }
  return Number.POSITIVE_INFINITY;
}

function identityOf({ service, release, instance, startMs }: Life): ServiceIdentity {
  const replica = digest(`${service.name} ${release.version}`).slice(0, 9);
  return {
    service: service.name,
    version: release.version,
    env: "demo",
    namespace: "shop",
    workload: service.name,
    pod: `${service.name}-${replica}-${digest(`${service.name} ${instance} ${startMs}`).slice(0, 5)}`,
    container: "app",
    labels: {},
  };
}

function seedOf({ service, release, instance, startMs }: Omit<Life, "end">): string {
  return `${service.name} ${release.version} ${instance} ${Math.floor(startMs / DAY)}`;
}

/** From 0 to 1, the same for the same texts. */
function unitOf(seed: string, what: string): number {
  let hash = 0x811c9dc5;
  for (const character of `${seed} ${what}`) {
    hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193) >>> 0;
  }
  return (Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0) / 2 ** 32;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
