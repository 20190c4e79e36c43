/** Whether the newest answers of the server lack a part of its database. */
import { useSyncExternalStore } from "react";
import { type PartialAnswer, partialIn } from "../../../../src/model/wire/partial.js";

/** By path of the route, the newest answer's. */
const lacking = new Map<string, PartialAnswer>();
const listeners = new Set<() => void>();
let shown: PartialAnswer | null = null;

export function noteAnswer(address: string, { headers }: Response): void {
  const [path = ""] = address.split("?");
  const partial = partialIn(headers);
  if (partial === null) {
    lacking.delete(path);
  } else {
    lacking.set(path, partial);
  }
  const worst = [...lacking.values()].sort((a, b) => b.missing - a.missing)[0] ?? null;
  if (worst?.missing !== shown?.missing || worst?.shards !== shown?.shards) {
    shown = worst;
    for (const listener of listeners) {
      listener();
    }
  }
}

export function usePartial(): PartialAnswer | null {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
}
