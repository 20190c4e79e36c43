/**
 * Decides how each program that runs is recorded, and starts and ends recordings so that it becomes true:
 *
 *     age     0 ── 5 s ──────────── warm-up ───────────────────────▶
 *             nothing │ from outside │ agent, if the policy allows it and it is its turn (policy/choice.ts)
 *                          └─ agent early: those that keep ending before the warm-up (policy/short_lives.ts),
 *                             and those for which the server asked
 */
import type { ScannedProcess } from "../linux/index.js";
import type { Millis } from "../model/base/units.js";
import type { Bounds } from "./policy/bounds.js";
import { type Candidate, chooseAgents, isInShare } from "./policy/choice.js";
import { isInWindow } from "./policy/programs.js";
import { LEAST_AGE_MS, type ShortLives } from "./policy/short_lives.js";
import type { Recorders, Watched } from "./recordings/recorders.js";
import type { WatchEvent } from "./recordings/watch_event.js";

interface AssignmentOptions {
  readonly recorders: Recorders;
  readonly shortLives: ShortLives;
  /** The server asked for a profile of it: it gets the agent at once, until the request ends. */
  readonly isAsked: (one: Watched, nowMs: Millis) => boolean;
  /** Its pod is not known yet, so that it would be recorded under a wrong name. */
  readonly isLate: (root: ScannedProcess) => boolean;
  readonly onEvent: (event: WatchEvent) => void;
}

export class Assignment {
  readonly #options: AssignmentOptions;

  constructor(options: AssignmentOptions) {
    this.#options = options;
  }

  /**
   * @param living all programs that run
   * @returns milliseconds until the next of them is old enough for a recording or the agent; null: all are
   */
  assign(living: readonly Watched[], bounds: Bounds, nowMs: Millis): Millis | null {
    this.#choose(living, bounds, nowMs);
    return this.#nextAgeMs(living, bounds, nowMs);
  }
  #choose(living: readonly Watched[], bounds: Bounds, nowMs: Millis): void {
    const now = new Date();
    const asked = new Set(living.filter((one) => this.#options.isAsked(one, nowMs)));
    const mayHave = (one: Watched) =>
      one.rule.watch === "agent" &&
      (asked.has(one) ||
        (isInShare({ key: one.program.root.key, share: one.rule.share }) &&
          isInWindow(one.rule.window, now)));
    const choice = chooseAgents(
      living.map((one) => this.#candidate(one, mayHave(one), asked.has(one), bounds, nowMs)),
      bounds,
      nowMs,
    );
    const stop = new Set(choice.stop);
    const start = new Set(choice.start);
    const { recorders } = this.#options;
    for (const one of living) {
      const { growing, rule, program } = one;
      const isAllowed = growing?.kind === "agent" ? mayHave(one) : rule.watch !== "never";
      if (growing !== null && (!isAllowed || stop.has(program.root.key))) {
        growing.stop.abort();
      } else if (
        start.has(program.root.key) &&
        growing?.kind !== "agent" &&
        recorders.mayEnter &&
        (asked.has(one) || this.#isOldEnough(one, bounds, nowMs))
      ) {
        recorders.enter(one);
      } else if (
        growing === null &&
        nowMs >= one.brokenUntilMs &&
        rule.watch !== "never" &&
        !this.#options.isLate(program.root) &&
        ageMs(program.root) >= LEAST_AGE_MS
      ) {
        recorders.recordOutside(one);
      }
    }
  }

  #candidate(
    { program: { root }, rule, growing, leftMs, turns, retryMs }: Watched,
    mayHave: boolean,
    isAsked: boolean,
    { warmUpMs }: Bounds,
    nowMs: Millis,
  ): Candidate {
    const { isLate, shortLives } = this.#options;
    const leastMs = () => (isAsked ? LEAST_AGE_MS : shortLives.warmUpOf(root, warmUpMs, nowMs));
    return {
      key: root.key,
      service: root.identity.service,
      share: mayHave ? 1 : 0,
      most: rule.most,
      isReady:
        mayHave && root.attach.ok && nowMs >= retryMs && !isLate(root) && ageMs(root) >= leastMs(),
      sinceMs: growing?.kind !== "agent" ? null : isAsked ? nowMs : growing.sinceMs,
      leftMs: isAsked ? null : leftMs,
      turns: isAsked ? -1 : turns,
    };
  }

  /** Whether it has reached the warm-up, or gets the agent early, which is then accounted for. */
  #isOldEnough(one: Watched, bounds: Bounds, nowMs: Millis): boolean {
    const { program } = one;
    const { warmUpMs } = bounds;
    if (ageMs(program.root) >= warmUpMs) {
      return true;
    }
    const early = this.#options.shortLives.enter(program.root, bounds, nowMs);
    one.isEarly = early !== null;
    if (early?.isFirst === true) {
      const { lifeMs, warmUpMs: earlyMs } = early;
      this.#options.onEvent({ kind: "short-lives", program, lifeMs, earlyMs, warmUpMs });
    }
    return one.isEarly;
  }

  #nextAgeMs(living: readonly Watched[], { warmUpMs }: Bounds, nowMs: Millis): Millis | null {
    const left = living.flatMap(({ program: { root }, rule, growing }) => {
      if (rule.watch === "never" || growing?.kind === "agent") {
        return [];
      }
      const earlyMs = this.#options.shortLives.warmUpOf(root, warmUpMs, nowMs);
      return (growing === null ? LEAST_AGE_MS : earlyMs < warmUpMs ? earlyMs : 0) - ageMs(root);
    });
    const ahead = left.filter((ms) => ms > 0);
    return ahead.length === 0 ? null : Math.min(...ahead);
  }
}

function ageMs({ startedMs }: ScannedProcess): Millis {
  return Date.now() - startedMs;
}
