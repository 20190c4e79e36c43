/**
 * A store whose database has several shards can answer while some of them are down. Only work that reports what its answer lacks
 * gets such an answer; all other work (alerts, roll-ups, writes) gets the error.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { PartialAnswer } from "../../model/wire/partial.js";

const answers = new AsyncLocalStorage<{ partial: PartialAnswer | null }>();

/** What is asked of a store within `work` may lack shards. @returns what it lacked; null: nothing */
export async function allowingPartial(work: () => Promise<unknown>): Promise<PartialAnswer | null> {
  const answer = { partial: null as PartialAnswer | null };
  await answers.run(answer, work);
  return answer.partial;
}

export function mayBePartial(): boolean {
  return answers.getStore() !== undefined;
}

/** Whether something of the answer that is being made lacks shards: it must not be kept for later answers. */
export function isPartial(): boolean {
  return (answers.getStore()?.partial ?? null) !== null;
}

export function notePartial(partial: PartialAnswer): void {
  const answer = answers.getStore();
  if (answer !== undefined && partial.missing > (answer.partial?.missing ?? 0)) {
    answer.partial = partial;
  }
}
