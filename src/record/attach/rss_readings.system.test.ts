/** RSS keeps its distance when the recorders of many programs share a budget that makes polls rare. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LIBRARY_PATH } from "../../linux/installation.js";
import { present } from "../../model/base/present.js";
import { CpuBudget } from "../budget/cpu_budget.js";
import { attachAndRecord } from "./attach.js";

const PROGRAM = `import time
print("up", flush=True)
while True: time.sleep(0.1)
`;

test("between two polls that are far apart, RSS and the tree's RSS have a reading at each promised interval", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-rss-"));
  const program = spawn("python3", ["-c", PROGRAM], { stdio: ["ignore", "pipe", "ignore"] });
  await once(present(program.stdout), "data");
  const budget = new CpuBudget();
  const others = Array.from({ length: 2_000 }, () => budget.join());
  try {
    const { open } = await attachAndRecord({
      pid: present(program.pid),
      recordingPath: join(folder, "steady.tidemark"),
      libraryPath: LIBRARY_PATH,
      budget,
      rssMs: () => 1_000,
      waitMs: 60_000,
      forMs: 20_000,
    });
    const [series] = open().series;
    const { timesMs, values } = present(series);
    // The first polls, whose cost is not known yet, come often in any case.
    const late = (metric: "rssBytes" | "treeRssBytes" | "threads") =>
      values
        .get(metric)
        ?.filter(
          (value, i) => !Number.isNaN(value) && (timesMs[i] ?? 0) > (timesMs[0] ?? 0) + 6_000,
        );
    const polls = late("threads")?.length ?? 0;
    expect(late("rssBytes")?.length ?? 0).toBeGreaterThan(2 * polls + 2);
    expect(late("treeRssBytes")?.length).toBe(late("rssBytes")?.length);
  } finally {
    for (const leave of others) {
      leave();
    }
    program.kill("SIGKILL");
    rmSync(folder, { recursive: true });
  }
});
