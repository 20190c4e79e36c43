/** PyTorch on the CPU: training, and a DataLoader with worker processes. */

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import type { SummaryJson } from "../../src/model/documents/summary_document.js";
import { environment } from "../environment.js";
import { programs, type RecordedOutcome, record, removeScratch } from "../run.js";
import { expectFigure, type KnownSite, placeOf, topPlaces, truthIn } from "../truth.js";

const python = environment.torchPython;
afterAll(removeScratch);

describe.skipIf(python === null).each([0, 2])("training with %i DataLoader workers", (workers) => {
  let outcome: RecordedOutcome;
  let summary: SummaryJson;
  let known: Map<string, KnownSite>;

  beforeAll(async () => {
    outcome = await record([present(python), join(programs, "torch_training.py"), String(workers)]);
    expect(outcome.status, outcome.stderr).toBe(0);
    summary = await outcome.summary();
    known = new Map(truthIn(outcome.stdout).sites.map((site) => [site.name, site]));
  });

  test("kept tensors are attributed to the line that keeps them", () => {
    const activations = present(known.get("activations"));
    const profile = outcome.open().profileAt("end");
    // Sixteen tensors, while the period comes down again after the import of torch had raised it.
    expectFigure(profile, activations, "live", activations.liveBytes, 0.4);
    expect(topPlaces(profile, "live").slice(0, 5)).toContain(placeOf(activations));
  });

  test("memory of the data set is attributed to its line, in whichever process it ran", () => {
    const cache = present(known.get("worker cache"));
    expectFigure(outcome.open().profileAt("end"), cache, "allocated", cache.liveBytes, 0.2);
    const owners = summary.processes.filter(({ profiled }) => profiled);
    expect(owners).toHaveLength(1 + workers);
    const children = owners.filter(({ parentPid }) => parentPid === truthIn(outcome.stdout).pid);
    expect(children).toHaveLength(workers);
    for (const child of children) {
      expect(child.peakRssBytes).toBeGreaterThan(30 * 2 ** 20);
    }
  });
});
