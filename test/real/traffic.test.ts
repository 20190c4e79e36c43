/** The middleware for a share of the traffic, in real web frameworks on real servers. */
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { coarsestPeriod } from "../../src/inspect/recorded/summary.js";
import { present } from "../../src/model/base/present.js";
import { environment } from "../environment.js";
import { programs, record, removeScratch, repository } from "../run.js";

afterAll(removeScratch);

describe.skipIf(environment.packagesPython === null)("with Flask, Django and FastAPI", () => {
  const app = join(programs, "traffic_app.py");

  /** Live bytes at the end by endpoint; "" is memory without a label. `tolerance`: five standard errors of so many bytes. */
  async function byEndpoint(share: string) {
    const outcome = await record([present(environment.packagesPython), app], {
      // Imports would make the agent choose a longer period, and the figures less exact than the test needs.
      options: ["--period", "16K"],
      env: { TIDEMARK_TRAFFIC: share, PYTHONPATH: join(repository, "python") },
    });
    expect(outcome.status, outcome.stderr).toBe(0);
    const { groups = [] } = await outcome.summary("--by", "endpoint");
    // On a busy machine, the agent chooses a longer one all the same.
    const coarsest = coarsestPeriod(outcome.open());
    return {
      live: new Map(groups.map(({ group, liveBytes }) => [group, liveBytes])),
      tolerance: (bytes: number) => 5 * Math.sqrt(bytes * coarsest),
    };
  }
  const REQUESTS = 300;
  const KEPT = 100_033;

  test("all requests are labelled with the routes that the frameworks name", async () => {
    const { live, tolerance } = await byEndpoint("100%");
    const exact = REQUESTS * KEPT;
    for (const route of [
      "/flask/<int:number>",
      "/django/<int:number>/",
      "/fastapi/items/{number}",
    ]) {
      const bytes = live.get(route) ?? 0;
      expect(bytes, route).toBeGreaterThan(0.98 * exact - tolerance(exact));
      // The first request imports modules.
      expect(bytes, route).toBeLessThan(exact + 3e6 + tolerance(exact));
    }
  });

  test("a share of the requests is labelled, and all of their memory is in the profile", async () => {
    const { live, tolerance } = await byEndpoint("25%");
    const exact = 3 * REQUESTS * KEPT;
    const labelled = [...live].filter(([key]) => key.startsWith("/"));
    const bytes = labelled.reduce((sum, [, own]) => sum + own, 0);
    const all = [...live.values()].reduce((sum, own) => sum + own, 0);
    // Of the requests, a random quarter; and of their memory, samples.
    const chosen = 5 * Math.sqrt(3 * REQUESTS * 0.25 * 0.75) * KEPT;
    const margin = Math.hypot(chosen, tolerance(0.25 * exact));
    expect(bytes).toBeGreaterThan(0.25 * exact - margin);
    expect(bytes).toBeLessThan(0.25 * exact + 3e6 + margin);
    expect(all).toBeGreaterThan(0.98 * exact - tolerance(exact));
  });
});
