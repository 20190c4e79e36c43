/** The middleware for a share of the traffic, in real web frameworks on real servers. */
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import { environment } from "../environment.js";
import { programs, record, removeScratch, repository } from "../run.js";

afterAll(removeScratch);

describe.skipIf(environment.packagesPython === null)("with Flask, Django and FastAPI", () => {
  const app = join(programs, "traffic_app.py");

  /** Live bytes at the end by endpoint; "" is memory without a label. */
  async function byEndpoint(share: string): Promise<Map<string, number>> {
    const outcome = await record([present(environment.packagesPython), app], {
      // Imports would make the agent choose a longer period, and the figures less exact than the test needs.
      options: ["--period", "64K"],
      env: { TIDEMARK_TRAFFIC: share, PYTHONPATH: join(repository, "python") },
    });
    expect(outcome.status, outcome.stderr).toBe(0);
    const { groups = [] } = await outcome.summary("--by", "endpoint");
    return new Map(groups.map(({ group, liveBytes }) => [group, liveBytes]));
  }

  test("all requests are labelled with the routes that the frameworks name", async () => {
    const live = await byEndpoint("100%");
    for (const route of [
      "/flask/<int:number>",
      "/django/<int:number>/",
      "/fastapi/items/{number}",
    ]) {
      const bytes = live.get(route) ?? 0;
      expect(bytes, route).toBeGreaterThan(25e6);
      expect(bytes, route).toBeLessThan(36e6);
    }
  });

  test("a share of the requests is labelled, and all of their memory is in the profile", async () => {
    const live = await byEndpoint("25%");
    const labelled = [...live].filter(([key]) => key.startsWith("/"));
    const bytes = labelled.reduce((sum, [, own]) => sum + own, 0);
    const all = [...live.values()].reduce((sum, own) => sum + own, 0);
    expect(bytes).toBeGreaterThan(0.15 * 90e6);
    expect(bytes).toBeLessThan(0.35 * 90e6);
    expect(all).toBeGreaterThan(85e6);
  });
});
