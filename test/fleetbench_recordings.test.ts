/** fleetbench: programs of the leak bench are recorded, and their recordings become labelled fleets. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RULES } from "../fleetbench/answers.mjs";
import { readCourses, recordMissing, valueAt } from "../fleetbench/courses.mjs";
import { scoreFleet, totalsOf } from "../fleetbench/score.mjs";
import { stretchedFleet } from "../fleetbench/stretch.mjs";
import { removeScratch, scratch } from "./run.js";

const PROGRAMS = ["request_history", "clean_lru_fills", "clean_bounded_deque"];
const MIB = 2 ** 20;
const HOUR = 3_600_000;
const folder = join(scratch(), "recordings");

beforeAll(() => {
  process.env.LEAKBENCH_SECONDS = "6";
  recordMissing(folder, () => {}, PROGRAMS);
  delete process.env.LEAKBENCH_SECONDS;
});
afterAll(removeScratch);

describe("recordings of the leak bench", () => {
  test("RSS and lines of the part between start-up and exit", async () => {
    const courses = await readCourses(folder, PROGRAMS);
    const leak = courses.find(({ name }) => name === "request_history");
    const end = leak?.lengthMs ?? 0;
    expect(leak).toMatchObject({ isLeak: true, functions: ["process_request"] });
    expect(leak?.rss.values[0]).toBe(0);
    const rss = leak?.rss ?? { times: [], values: [] };
    expect(valueAt(rss, end, true)).toBeGreaterThan(3 * MIB);
    // What leaked goes on after the end of the recording.
    expect(valueAt(rss, 2 * end, true)).toBeGreaterThan(1.5 * valueAt(rss, end, true));
    expect(valueAt(rss, 2 * end, false)).toBe(valueAt(rss, end, false));
    const [site] = leak?.sites ?? [];
    expect(site?.stack.map((frame) => frame.file)).toContain("/srv/service/request_history.py");
    const { times = [], values = [] } = site?.live ?? {};
    expect([times[0], values[0]]).toEqual([0, 0]);
    expect(values.at(-1)).toBeGreaterThan(3 * MIB);
  });

  test("are stretched to fleets whose leaks are found, with version and line", async () => {
    const courses = await readCourses(folder, PROGRAMS);
    const fleet = stretchedFleet(3, courses, 4);
    expect(stretchedFleet(3, courses, 4)).toEqual(fleet);
    const leak = fleet.processes.find(({ service }) => service.startsWith("recorded-leak"));
    const { times = [] } = leak?.rss ?? {};
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(6 * HOUR);
    const own = RULES.get("tidemark") as NonNullable<ReturnType<typeof RULES.get>>;
    const { services, leaks, precision, recall, versionRight, culpritRight } = totalsOf(
      scoreFleet(fleet, own),
    );
    expect([services, leaks]).toEqual([4, 2]);
    expect([precision, recall, versionRight, culpritRight]).toEqual([1, 1, 1, 1]);
  });

  test("one that is damaged ends in one line that says what to do", async () => {
    writeFileSync(join(folder, "clean_lru_fills.tidemark"), "damaged");
    await expect(readCourses(folder, PROGRAMS)).rejects.toThrow(
      /clean_lru_fills\.tidemark: .*delete it, so that it is recorded again$/,
    );
    expect(() => recordMissing(join(folder, "clean_lru_fills.tidemark"), () => {})).toThrow(
      /is a file; --recordings needs a folder/,
    );
  });
});
