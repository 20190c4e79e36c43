/**
 * Programs that repeatedly end before the warm-up is over, such as a worker that its supervisor restarts: none of them
 * would ever be old enough for the agent. From three such lives on, some of the next ones get it earlier:
 *
 *     ├── 20 s ──┤├── 21 s ──┤├── 20 s ──┤├─5 s─┬─ agent ─┤├─5 s─┬─ agent ─┤├─5 s─┬─ agent ─┤├── 20 s ──┤ ... a turn later: one
 *
 * A host that runs many short tools looks the same, and must not pay for an agent in each of them. So three in a row have it, then
 * one in each turn, one of a name at a time, and all names together as often as a credit allows.
 */
import type { ScannedProcess } from "../../linux/index.js";
import type { Millis, Pid } from "../../model/base/units.js";
import type { Program } from "./programs.js";

/** A program of this age has loaded its modules: it is recorded, and may get the agent. */
export const LEAST_AGE_MS: Millis = 5_000;
/** Of a shorter life, too little would be left to record. */
const LEAST_LIFE_MS: Millis = 10_000;
/** Age at which it gets the agent, as a share of its typical life. */
const EARLY_SHARE = 1 / 6;
const LEAST_LIVES = 3;
const KEPT_LIVES = 5;
/** Lives with the agent that follow each other; later ones are a turn apart. */
const FIRST_AGENTS = 3;
/** Of all names: an agent for a short life costs less than 0.1 s of a core, its diagnosis included. */
const MOST_CREDIT = 6;
const CREDIT_MS: Millis = 60_000;
/** Names whose lives are remembered, and for how long after the last end. */
const MOST_NAMES = 1_000;
const FORGET_MS: Millis = 3_600_000;
/** Lines of a name that are counted. */
const MOST_LINES = 20;

interface Named {
  /** Newest last. */
  lives: Millis[];
  endedMs: Millis;
  agents: number;
  nextMs: Millis;
  /** Number of its lives with the agent that were diagnosed, and in how many of them each line kept what it allocated. */
  diagnosed: number;
  readonly lines: Map<string, number>;
}

interface Living {
  readonly root: ScannedProcess;
  seenMs: Millis;
  /** It got the agent before the warm-up was over. */
  isEarly: boolean;
}

/** What is known when a program gets the agent early. */
export interface Early {
  readonly lifeMs: Millis;
  readonly warmUpMs: Millis;
  /** The first one of its name. */
  readonly isFirst: boolean;
}

export interface Repeated {
  /** In so many lives, of those that were diagnosed. */
  readonly lives: number;
  readonly of: number;
}

interface ShortLivesOptions {
  /** When a process ended that lived at `aliveMs`; null: unknown. */
  readonly exitOf: (pid: Pid, aliveMs: Millis) => Millis | null;
  /** Milliseconds since 1970. */
  readonly wallClock: () => Millis;
}

/** All times are from one clock that moves only forward, except `startedMs` of processes and `wallClock`. */
export class ShortLives {
  readonly #options: ShortLivesOptions;
  /** Ended longest ago first. */
  readonly #names = new Map<string, Named>();
  /** By key of the program. */
  readonly #living = new Map<string, Living>();
  #credit = MOST_CREDIT;
  #creditedMs: Millis = 0;

  constructor(options: ShortLivesOptions) {
    this.#options = options;
  }

  /** `programs`: all that run. */
  observe(programs: readonly Pick<Program, "root">[], warmUpMs: Millis, nowMs: Millis): void {
    const keys = new Set<string>();
    for (const { root } of programs) {
      keys.add(root.key);
      const known = this.#living.get(root.key);
      if (known === undefined) {
        this.#living.set(root.key, { root, seenMs: nowMs, isEarly: false });
      } else {
        known.seenMs = nowMs;
      }
      if (this.#ageMs(root) >= warmUpMs) {
        this.#names.delete(nameOf(root)); // it lives long enough for the agent
      }
    }
    for (const [key, one] of this.#living) {
      if (!keys.has(key)) {
        this.#living.delete(key);
        this.#ended(one, warmUpMs, nowMs);
      }
    }
    for (const [name, { endedMs }] of this.#names) {
      if (nowMs - endedMs < FORGET_MS && this.#names.size <= MOST_NAMES) {
        break;
      }
      this.#names.delete(name);
    }
  }

  #ended({ root, seenMs }: Living, warmUpMs: Millis, nowMs: Millis): void {
    const endMs = this.#options.exitOf(root.pid, seenMs) ?? nowMs;
    const lifeMs = this.#ageMs(root) - (nowMs - endMs);
    if (lifeMs < LEAST_LIFE_MS || lifeMs >= warmUpMs) {
      return;
    }
    const name = nameOf(root);
    const known = this.#names.get(name) ?? {
      ...{ lives: [], endedMs: nowMs, agents: 0, nextMs: 0, diagnosed: 0, lines: new Map() },
    };
    known.lives = [...known.lives, lifeMs].slice(-KEPT_LIVES);
    known.endedMs = nowMs;
    this.#names.delete(name);
    this.#names.set(name, known);
  }

  /** Age from which a program may get the agent: less than `warmUpMs` if those of its name keep ending before. */
  warmUpOf(root: ScannedProcess, warmUpMs: Millis, nowMs: Millis): Millis {
    const name = nameOf(root);
    const known = this.#names.get(name);
    const mayBe =
      known !== undefined &&
      known.lives.length >= LEAST_LIVES &&
      nowMs >= known.nextMs &&
      this.#creditAt(nowMs) >= 1 &&
      ![...this.#living.values()].some((one) => one.isEarly && nameOf(one.root) === name);
    return mayBe ? earlyAge(known.lives, warmUpMs) : warmUpMs;
  }

  /** A program is about to get the agent. `turnMs`: how long it waits before the next one of its name. @returns null: not now. */
  enter(
    root: ScannedProcess,
    { warmUpMs, turnMs }: { readonly warmUpMs: Millis; readonly turnMs: Millis },
    nowMs: Millis,
  ): Early | null {
    const living = this.#living.get(root.key);
    const known = this.#names.get(nameOf(root));
    const earlyMs = this.warmUpOf(root, warmUpMs, nowMs);
    if (living === undefined || known === undefined || this.#ageMs(root) < earlyMs) {
      return null;
    }
    this.#credit = this.#creditAt(nowMs) - 1;
    this.#creditedMs = nowMs;
    living.isEarly = true;
    known.agents += 1;
    known.nextMs = known.agents < FIRST_AGENTS ? nowMs : nowMs + turnMs;
    return { lifeMs: median(known.lives), warmUpMs: earlyMs, isFirst: known.agents === 1 };
  }

  /**
   * A life with the agent was diagnosed, too short for a verdict; `line` kept what it allocated ("": none did).
   * @returns at the second life with that line: in how many it was.
   */
  diagnosed(root: ScannedProcess, line: string): Repeated | null {
    const known = this.#names.get(nameOf(root));
    if (known === undefined) {
      return null;
    }
    known.diagnosed += 1;
    const lives = (known.lines.get(line) ?? 0) + 1;
    if (line !== "" && (lives > 1 || known.lines.size < MOST_LINES)) {
      known.lines.set(line, lives);
    }
    return line !== "" && lives === 2 ? { lives, of: known.diagnosed } : null;
  }

  #creditAt(nowMs: Millis): number {
    return Math.min(MOST_CREDIT, this.#credit + (nowMs - this.#creditedMs) / CREDIT_MS);
  }

  #ageMs({ startedMs }: ScannedProcess): Millis {
    return this.#options.wallClock() - startedMs;
  }
}

function earlyAge(lives: readonly Millis[], warmUpMs: Millis): Millis {
  return Math.min(warmUpMs, Math.max(LEAST_AGE_MS, median(lives) * EARLY_SHARE));
}

function median(lives: readonly Millis[]): Millis {
  const sorted = [...lives].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** What stays the same after a restart, even in another container or pod. */
function nameOf({ identity, uid }: ScannedProcess): string {
  const { service, version, env, namespace, workload, container } = identity;
  return JSON.stringify([service, version, env, namespace, workload, container, uid]);
}
