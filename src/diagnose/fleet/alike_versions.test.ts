import { expect, test } from "vitest";
import { diagnosisOf, MIB, three } from "./fleet_evidence.fixture.js";

/** A version that ran for days, and then one each 22 hours, with this memory by age. */
function deployedDaily(...versions: ((hours: number) => number)[]) {
  const daysAgo = (deploy: number) => ((versions.length - deploy) * 22) / 24;
  return diagnosisOf([
    ...three({ version: "0.9", fromDaysAgo: 9, toDaysAgo: daysAgo(0), mib: () => 0 }),
    ...versions.flatMap((mib, at) =>
      three({
        ...{ version: `1.${at}`, fromDaysAgo: daysAgo(at), mib },
        ...(at + 1 < versions.length ? { toDaysAgo: daysAgo(at + 1) } : {}),
      }),
    ),
  ]);
}

test("versions that are deployed too often to be judged one by one are judged together if they rise alike", () => {
  const leaks = (hours: number) => 4 * hours;
  const { leak, verdict } = deployedDaily(leaks, leaks, leaks);
  expect(verdict.kind).toBe("python-leak");
  expect(leak).toMatchObject({ since: "1.0", version: "1.2" });
  expect((leak?.growthBytesPerHour ?? 0) / MIB).toBeCloseTo(4, 0);
  const fills = (hours: number) => 90 * (1 - Math.exp(-hours / 8));
  expect(deployedDaily(fills, fills, fills).verdict.kind).not.toBe("python-leak");
  // One alone is not decided within a day, nor is one that rises unlike the others.
  expect(deployedDaily(leaks).verdict.kind).not.toBe("python-leak");
  const slow = (hours: number) => 1.5 * hours;
  expect(deployedDaily(slow, slow, leaks).verdict.kind).not.toBe("python-leak");
});
