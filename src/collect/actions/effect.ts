/** What an action did to the memory of a program, or of its service on this host if the program has to end. */
import { setTimeout as sleep } from "node:timers/promises";
import { hasEnded, readStat, type ScannedProcess } from "../../linux/index.js";
import { formatDuration } from "../../model/base/numbers.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import type { ActionJson, ActionName } from "../../model/documents/action_document.js";
import { rssOf } from "../captures/triggers.js";
import type { Program } from "../policy/programs.js";
import { ActionFailed } from "./action_failed.js";
import { comesTrue } from "./server_workers.js";

interface Performed {
  readonly program: Program;
  readonly action: { readonly name: ActionName };
  readonly record: ActionJson;
  /** Keys of the programs that ran before. */
  readonly before: ReadonlySet<string>;
  readonly programs: () => readonly Program[];
  readonly graceMs: Millis;
  readonly signal: AbortSignal;
}

/** Pages that are given back are no longer resident at once; a new worker needs time to load. */
const SETTLE_MS: Millis = 5_000;
/** The share of its memory that a program must release for an action to have helped. */
const HELP = 0.05;
/** They end the program. A pod that replaces an evicted one may start on another host. */
const ENDING: ReadonlySet<ActionName> = new Set(["restart", "evict_pod"]);

/** Throws ActionFailed if the program ended although it should not have, or `tidemark watch` ends. */
export async function effectOf(performed: Performed): Promise<Partial<ActionJson>> {
  const { program, action, record, programs, graceMs, signal } = performed;
  const { beforeBytes = 0, outcome } = record;
  const started = () => startedSince(performed) !== undefined;
  const hasStarted = action.name !== "restart" || (await comesTrue(started, graceMs, signal));
  await sleep(SETTLE_MS, undefined, { signal });
  if (action.name === "restart" && !(hasStarted && started())) {
    const why = `${outcome}, and nothing has started it again on this host within ${formatDuration(graceMs)}`;
    throw new ActionFailed(why, true);
  }
  const afterBytes = bytesOf(program, action, programs());
  if (afterBytes === null) {
    throw new ActionFailed(`${outcome}, and the program ended`, true);
  }
  const fell = beforeBytes - afterBytes;
  return { state: "done", afterBytes, helped: fell > 0 && fell >= HELP * beforeBytes };
}

function startedSince({ program: { root }, before, programs }: Performed): Program | undefined {
  return programs().find(
    (one) =>
      !before.has(one.root.key) &&
      one.root.identity.service === root.identity.service &&
      isAlive(one.root),
  );
}

/** Of its processes now, null if it has ended; if it has to end, of all programs of its service here. */
export function bytesOf(
  { root }: Program,
  { name }: { readonly name: ActionName },
  all: readonly Program[],
): Bytes | null {
  if (ENDING.has(name)) {
    return all
      .filter((one) => one.root.identity.service === root.identity.service)
      .reduce((sum, { processes }) => sum + rssOf(processes), 0);
  }
  // Not by its key, which changes when celery executes itself again.
  const same = all.find(
    (one) => one.root.pid === root.pid && one.root.startTicks === root.startTicks,
  );
  return same === undefined || !isAlive(root) ? null : rssOf(same.processes);
}

export function isAlive({ pid, startTicks }: ScannedProcess): boolean {
  const stat = readStat(pid);
  return stat !== null && !hasEnded(stat) && stat.startTicks === startTicks;
}
