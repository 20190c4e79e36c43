/**
 * Decides which programs have the agent: at most `agents` at a time. If more may have it, they take turns: when the
 * turn of a program is over and another one waits, its agent is removed, and the program that waited longest is next.
 */
import { createHash } from "node:crypto";
import { hostName } from "../../linux/this_process/host_name.js";
import type { Millis } from "../../model/base/units.js";

export interface Candidate {
  /** Of the program, unique while it runs. */
  readonly key: string;
  readonly service: string;
  /** Share of the programs under its rule that get the agent, and the most of its service at a time. */
  readonly share: number;
  readonly most: number;
  /** It may be attached to, is old enough, and did not refuse recently. */
  readonly isReady: boolean;
  /** When its agent was loaded; null if it has none. */
  readonly sinceMs: Millis | null;
  /** When its last turn ended; null if it had none. */
  readonly leftMs: Millis | null;
  /** How many turns it had. */
  readonly turns: number;
}

export interface Choice {
  readonly start: readonly string[];
  readonly stop: readonly string[];
}

interface Bounds {
  readonly agents: number;
  readonly turnMs: Millis;
}

/** `nowMs`: of the same clock as the candidates' times. */
export function chooseAgents(
  candidates: readonly Candidate[],
  { agents, turnMs }: Bounds,
  nowMs: Millis,
): Choice {
  const running = candidates.filter(({ sinceMs }) => sinceMs !== null);
  const waiting = candidates
    .filter((one) => one.sinceMs === null && one.isReady && isInShare(one))
    .sort((a, b) => (a.leftMs ?? -1) - (b.leftMs ?? -1) || a.turns - b.turns);
  const ofService = new Map<string, number>();
  const count = (service: string, change: number) => {
    const next = (ofService.get(service) ?? 0) + change;
    ofService.set(service, next);
    return next;
  };
  for (const { service } of running) {
    count(service, 1);
  }
  let free = agents - running.length;
  const start: string[] = [];
  const stop: string[] = [];
  const over = running
    .filter(({ sinceMs }) => sinceMs !== null && nowMs - sinceMs >= turnMs)
    .sort((a, b) => (a.sinceMs ?? 0) - (b.sinceMs ?? 0));
  const leave = (one: Candidate) => {
    over.splice(over.indexOf(one), 1);
    stop.push(one.key);
    count(one.service, -1);
    free += 1;
  };
  for (const one of waiting) {
    const sibling = over.find(({ service }) => service === one.service);
    if ((ofService.get(one.service) ?? 0) >= one.most) {
      if (sibling === undefined) {
        continue; // its service already has as many as it may have
      }
      leave(sibling);
    }
    const oldest = over[0];
    if (free <= 0 && oldest !== undefined) {
      leave(oldest);
    }
    if (free > 0) {
      start.push(one.key);
      count(one.service, 1);
      free -= 1;
    }
  }
  return { start, stop };
}

/** The answer is always the same for a program and does not depend on other programs. */
export function isInShare({ key, share }: Pick<Candidate, "key" | "share">): boolean {
  return share >= 1 || place(key) < share;
}

/** 0 to 1, uniform over programs. */
function place(key: string): number {
  const digest = createHash("sha256").update(`${hostName()} ${key}`).digest();
  return digest.readUInt32LE(0) / 2 ** 32;
}
