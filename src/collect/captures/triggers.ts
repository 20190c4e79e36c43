/**
 * Reads the memory of each program that has triggers, and fires a trigger when its condition holds.
 *
 *     every 3 to 10 s   RSS, limit, pressure, kills ──> readings of the program ──condition──> fire
 *
 * A level (RSS, share of the limit, pressure) fires when it is crossed, and again only after it has been below in the
 * meantime. Growth and a verdict may fire again after the trigger's cooldown. No trigger fires for the same program
 * twice within its cooldown.
 */
import { isDeepStrictEqual } from "node:util";
import {
  type CgroupPlace,
  findCgroup,
  ofGroup,
  type RecentTexts,
  readLimiting,
  readPressure,
  readRss,
  roomOf,
} from "../../linux/index.js";
import type { Bytes, Millis, Pid } from "../../model/base/units.js";
import { type Condition, distanceOf, ProgramReadings, type Reading } from "../policy/conditions.js";
import type { Trigger } from "../policy/policy.js";
import type { Program } from "../policy/programs.js";

export interface Triggered {
  readonly program: Program;
  readonly trigger: Trigger;
  /** The condition with its figures, as part of a sentence. */
  readonly reason: string;
}

interface Course {
  readonly readings: ProgramReadings;
  readonly pids: Set<Pid>;
  place: CgroupPlace | null;
  /** A program may be moved to another control group after its start. */
  placedMs: Millis;
  nextMs: Millis;
  /** What its readings must show. */
  conditions: readonly Condition[];
  /** By index of the trigger: when it may fire again; infinite until its condition is false. */
  readonly restsUntilMs: Map<string, Millis>;
}

const PLACED_MS: Millis = 60_000;

export class Triggers {
  readonly #texts: RecentTexts;
  #courses = new Map<string, Course>();
  #dueMs: Millis = 0;

  /** `texts`: of the files that programs share. */
  constructor(texts: RecentTexts) {
    this.#texts = texts;
  }

  /** When the next program is to be read, on the clock of {@link next}. */
  get dueMs(): Millis {
    return this.#dueMs;
  }

  /** `all`: every running program. `nowMs`: from a clock that only moves forward. */
  next(
    all: readonly {
      readonly program: Program;
      readonly triggers: readonly Trigger[];
      /** Another condition that {@link holds} is asked about. */
      readonly also: Condition | null;
    }[],
    nowMs: Millis,
  ): Triggered[] {
    const before = this.#courses;
    this.#courses = new Map();
    this.#dueMs = Number.POSITIVE_INFINITY;
    const fired: Triggered[] = [];
    for (const { program, triggers, also } of all) {
      if (triggers.length > 0 || also !== null) {
        const { key } = program.root;
        const course = before.get(key) ?? {
          readings: new ProgramReadings(),
          pids: new Set<Pid>(),
          place: null,
          placedMs: Number.NEGATIVE_INFINITY,
          nextMs: 0,
          conditions: [],
          restsUntilMs: new Map<string, Millis>(),
        };
        this.#courses.set(key, course);
        if (nowMs >= course.nextMs) {
          const conditions = triggers.map(({ when }) => when);
          course.conditions = also === null ? conditions : [...conditions, also];
          course.readings.for(course.conditions);
          course.nextMs = nowMs + distanceOf(course.conditions);
          course.readings.add(readingOf(program, course, this.#texts, nowMs));
          fired.push(...firing(program, course, triggers, nowMs));
        }
        this.#dueMs = Math.min(this.#dueMs, course.nextMs);
      }
    }
    return fired;
  }

  /** A sentence with the figures if the condition held at the program's last reading, otherwise null. */
  holds({ root }: Program, condition: Condition): string | null {
    return this.#courses.get(root.key)?.readings.holds(condition) ?? null;
  }

  /** The same from a reading that is made now. */
  holdsNow(program: Program, condition: Condition, nowMs: Millis): string | null {
    const course = this.#courses.get(program.root.key);
    if (
      course === undefined ||
      !course.conditions.some((known) => isDeepStrictEqual(known, condition))
    ) {
      return null;
    }
    this.#texts.forget();
    course.readings.add(readingOf(program, course, this.#texts, nowMs));
    return course.readings.holds(condition);
  }

  /** Takes a new verdict. */
  judged({ root }: Program, kind: string): void {
    this.#courses.get(root.key)?.readings.judged(kind);
  }
}

function firing(
  program: Program,
  { readings, restsUntilMs }: Course,
  triggers: readonly Trigger[],
  nowMs: Millis,
): Triggered[] {
  return triggers.flatMap((trigger) => {
    const reason = readings.holds(trigger.when);
    if (reason === null && restsUntilMs.size === 0) {
      return [];
    }
    const name = JSON.stringify(trigger);
    const restsUntil = restsUntilMs.get(name) ?? 0;
    if (reason === null) {
      if (restsUntil === Number.POSITIVE_INFINITY) {
        restsUntilMs.set(name, nowMs + trigger.cooldownMs);
      }
      return [];
    }
    if (nowMs < restsUntil) {
      return [];
    }
    restsUntilMs.set(
      name,
      isLevel(trigger.when) ? Number.POSITIVE_INFINITY : nowMs + trigger.cooldownMs,
    );
    return [{ program, trigger, reason }];
  });
}

function isLevel({ kind }: Condition): boolean {
  return kind === "rss" || kind === "limit" || kind === "pressure";
}

/** The processes of the previous reading are replaced. Reads only what the conditions need. */
function readingOf(
  { root, processes }: Program,
  course: Course,
  texts: RecentTexts,
  timeMs: Millis,
): Reading {
  const { pids, conditions, readings } = course;
  const kinds = new Set(conditions.map(({ kind }) => kind));
  const wantsGroup = kinds.has("limit") || kinds.has("oom-kill") || kinds.has("pressure");
  if (wantsGroup && timeMs - course.placedMs >= PLACED_MS) {
    course.place = findCgroup(root.pid, texts.read);
    course.placedMs = timeMs;
  }
  const place = wantsGroup ? course.place : null;
  const group = ofGroup(place, texts, readLimiting);
  const room = kinds.has("limit") ? ofGroup(place, texts, roomOf) : null;
  const living = new Set(processes.map(({ pid }) => pid));
  const hasLost = [...pids].some((pid) => !living.has(pid));
  pids.clear();
  for (const pid of living) {
    pids.add(pid);
  }
  const bytes = group?.limitBytes ?? null;
  return {
    timeMs,
    rssBytes: readings.wantsRss(timeMs) ? rssOf(processes) : null,
    limit: bytes === null || room === null ? null : { bytes, usedBytes: bytes - room },
    pressure: kinds.has("pressure") ? readPressure(place, texts.read) : null,
    oomKills: group?.oomKills ?? null,
    hasLost,
  };
}

/** Sum over the processes; shared memory counts more than once. */
export function rssOf(processes: readonly { readonly pid: Pid }[]): Bytes {
  return processes.reduce((sum, { pid }) => sum + rssOfProcess(pid), 0);
}

/** 0 if it has ended. */
export function rssOfProcess(pid: Pid): Bytes {
  return readRss(pid) ?? 0;
}
