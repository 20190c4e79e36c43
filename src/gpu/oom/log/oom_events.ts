/** The events of a log, deduplicated, because a traceback, a logger and a launcher print the same exception. */
import type { OomEventJson } from "../../../model/documents/gpu/gpu_document.js";

const MOST_EVENTS = 10_000;

export class OomEvents {
  readonly #events: OomEventJson[] = [];
  /** Events with the same figures, one per rank or writer. */
  readonly #known = new Map<string, OomEventJson[]>();
  #dropped = 0;

  add(event: OomEventJson): void {
    const { line, rank, writer, stack, repeats, advice, torch, ...figures } = event;
    const key = JSON.stringify(figures);
    const alike = this.#known.get(key) ?? [];
    if (alike.length === 0) {
      this.#known.set(key, alike);
    }
    const same = alike.find((one) => isOneMessage(one, event));
    if (same !== undefined) {
      same.repeats += 1;
      same.rank ??= rank;
      same.writer ||= writer;
      if (same.stack.length === 0) {
        same.stack = stack;
      }
      return;
    }
    if (this.#events.length >= MOST_EVENTS) {
      this.#dropped += 1;
      return;
    }
    alike.push(event);
    this.#events.push(event);
  }

  /** Sorted by line. */
  all(): OomEventJson[] {
    return this.#events.sort((a, b) => a.line - b.line);
  }

  limits(): string[] {
    return this.#dropped > 0 ? [`${this.#dropped} further messages are not listed`] : [];
  }
}

/** True if one is the program's line and the other the same line with its launcher's rank or name in front. */
function isOneMessage(a: OomEventJson, b: OomEventJson): boolean {
  if (a.rank !== null || b.rank !== null) {
    return a.rank === b.rank || a.rank === null || b.rank === null;
  }
  return a.writer.includes(b.writer) || b.writer.includes(a.writer);
}
