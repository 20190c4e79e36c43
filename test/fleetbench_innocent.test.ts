/** fleetbench: deploys of a larger cache, a bigger model, more traffic and a new cache are not accused at any age. */
import { expect, inject, test } from "vitest";
import { RULES } from "../fleetbench/answers.mjs";
import { generateFleet, INNOCENT_DEPLOYS } from "../fleetbench/generate.mjs";
import { DEPLOY_AGES_MS } from "../fleetbench/moments.mjs";
import { scoreFleet } from "../fleetbench/score.mjs";

const FIRST_SEED = 9300;

test("no innocent deploy is accused at the moments of the bench or at nine ages from 2 hours to 5 days", () => {
  const own = RULES.get("tidemark") as NonNullable<ReturnType<typeof RULES.get>>;
  const fleets = inject("counts").innocentDeployFleets;
  const rows = Array.from({ length: fleets }, (_, at) =>
    scoreFleet(generateFleet(FIRST_SEED + at, { causes: INNOCENT_DEPLOYS }), own, DEPLOY_AGES_MS),
  ).flat();
  expect(rows.map(({ innocentDeploy }) => innocentDeploy)).toEqual(Array(4 * fleets).fill(true));
  const accused = rows.filter(({ everFalse }) => everFalse);
  expect(accused.map(({ fleet, service, answer }) => [fleet, service, answer])).toEqual([]);
});
