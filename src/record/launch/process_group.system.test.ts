import { expect, test } from "vitest";
import { startGroup } from "./process_group.js";

/** Ignores the first SIGINT, as a program does that is about to begin a blocking call. */
const DEAF_ONCE = `import signal, sys, time
seen = []
def take(number, frame):
    seen.append(number)
    if len(seen) > 1:
        sys.exit(7)
signal.signal(signal.SIGINT, take)
print("ready", flush=True)
while True:
    time.sleep(600)`;

test("a program that missed the first interrupt gets a second one before it is killed", async () => {
  const abort = new AbortController();
  const { child, end } = startGroup({
    command: ["python3", "-c", DEAF_ONCE],
    environment: process.env,
    stdio: ["ignore", "pipe", "inherit"],
    until: abort.signal,
    graceMs: 12_000,
    endsDaemons: false,
  });
  child.stdout?.once("data", () => abort.abort(new Error("SIGTERM")));
  expect(await end).toEqual({ exitCode: 7, signal: null, startFailure: null });
});
