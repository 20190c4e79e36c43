import { expect, test } from "vitest";
import { present } from "../../model/base/present.js";
import { diagnosisOf, HOUR, OLD } from "./fleet_evidence.fixture.js";

const LIMIT = 1024;

/** Six instances of a version of three days; each gains so many MiB an hour. */
function leaking(rates: readonly number[]) {
  const lives = rates.map((rate, instance) => ({
    ...{ instance, version: "1.1", fromDaysAgo: 3, mib: (hours: number) => rate * hours },
  }));
  return diagnosisOf([...OLD, ...lives]);
}

/** What is left after three days, over the rate, in hours. */
const expectedHours = (rate: number, instance: number) =>
  (LIMIT - 330 - 5 * instance - rate * 72) / rate;

test("an instance that certainly leaks more slowly than its version has its own time to the limit", () => {
  const rates = [2, 2.1, 1.95, 2.05, 2, 1];
  const { forecast } = leaking(rates);
  expect(forecast.map(({ instance }) => instance).at(-1)).toBe("app-5");
  for (const [at, rate] of rates.entries()) {
    const own = present(forecast.find(({ instance }) => instance === `app-${at}`));
    expect(own.msToLimit / HOUR / expectedHours(rate, at)).toBeCloseTo(1, 1);
    expect(own.earliestMs).toBeLessThanOrEqual(own.msToLimit);
    expect(own.latestMs).toBeGreaterThanOrEqual(own.msToLimit);
  }
});

test("an instance of a few hours has the rate of its version", () => {
  const old = [0, 1, 2, 3].map((instance) => ({
    ...{ instance, version: "1.1", fromDaysAgo: 3, mib: (hours: number) => 2 * hours },
  }));
  const young = { instance: 4, version: "1.1", fromDaysAgo: 0.2, mib: () => 0 };
  const { forecast } = diagnosisOf([...OLD, ...old, young]);
  const own = present(forecast.find(({ instance }) => instance === "app-4"));
  expect(own.msToLimit / HOUR).toBeGreaterThan(250);
  expect(own.msToLimit / HOUR).toBeLessThan(450);
});
