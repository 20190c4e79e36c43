/** A view that takes the whole terminal, updates by itself and answers keys: `top`, `live`. */
import type { Key } from "ink";
import type { Millis } from "../../model/base/units.js";
import { badUsage } from "../../model/errors/errors.js";
import type { Screen } from "../text/output.js";

/** `Seen` is what a look found, `Choice` what the user's keys made of it: sorting, a filter, a row. */
export interface FullScreenView<Seen, Choice> {
  /** The command's name, for messages. */
  readonly name: string;
  /** What to run where there is no terminal. */
  readonly instead: string;
  readonly intervalMs: Millis;
  readonly choice: Choice;
  /** Looks anew; `null` before the first look. An error ends the view and goes to the caller. */
  readonly look: (before: Seen | null) => Seen | Promise<Seen>;
  /** Draws at most `rows` lines. */
  readonly draw: (screen: Screen, seen: Seen, choice: Choice, rows: number) => void;
  /** The choice after a key, the same where the key means nothing; null to leave. */
  readonly press: (choice: Choice, input: string, key: Key) => Choice | null;
}

/** Shows the view until the user leaves it. Throws TidemarkError where there is no terminal. */
export async function showFullScreen<Seen, Choice>(
  view: FullScreenView<Seen, Choice>,
): Promise<void> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw badUsage(`${view.name} needs a terminal`, view.instead);
  }
  // Loaded late: ink and react take 80 ms, and --help and --json do without them.
  const { drawUntilLeft } = await import("./ink_screen.js");
  await drawUntilLeft(view);
}
