/** A view that fills the terminal, refreshes itself and reacts to keys: `top`, `live`. */
import { badUsage } from "../../model/errors/errors.js";
import type { FullScreenView } from "./ink_screen.js";

export type { FullScreenView } from "./ink_screen.js";

/** Shows the view until the user leaves it. Throws TidemarkError without a terminal. */
export async function showFullScreen<Seen, Choice>(
  view: FullScreenView<Seen, Choice>,
): Promise<void> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw badUsage(`${view.name} needs a terminal`, `without one, use: ${view.instead}`);
  }
  // Loaded late, because ink and react take 80 ms to load and --help and --json do not need them.
  const { drawUntilLeft } = await import("./ink_screen.js");
  await drawUntilLeft(view);
}
