/** A view that takes the whole terminal, updates by itself and answers keys: `top`, `live`. */
import { badUsage } from "../../model/errors/errors.js";
import type { FullScreenView } from "./ink_screen.js";

export type { FullScreenView } from "./ink_screen.js";

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
