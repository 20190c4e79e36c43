import { describe, expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { diagnose } from "../verdict/verdict.js";

const of = (text: string) => diagnose(evidenceOf(text));
const saying = (text: string, rule: string) => of(text).evidence.find((e) => e.rule === rule);

describe("1.7 MiB a minute in a service of 2 GiB", () => {
  const service = "anonRssBytes 2048\nsite handle churns 40";
  const leak = "site note keeps 0.0283/s samples=";

  test("ten minutes are enough: its site is named, at its rate", () => {
    const { verdict, suspects, growth } = of(`minute 10\n${service}\n${leak}100`);
    expect(verdict.kind).toBe("python-leak");
    expect(suspects[0]?.stack[0]?.function).toBe("note");
    expect(growth.bytesPerHour / 2 ** 20).toBeCloseTo(102, -1);
  });

  test("half a minute is not enough, and the verdict states the length that it needs", () => {
    const text = `minute 0.5\n${service}\n${leak}8`;
    expect(of(text).verdict.kind).toBe("insufficient-evidence");
    expect(saying(text, "small-growth")?.detail).toMatch(
      /note .* keeps 102 MiB\/h.* a window of .* would/,
    );
  });

  test("a rise in the last third is neither a plateau nor a leak yet", () => {
    const text = (at: string) => `anonRssBytes 60 steps 20 at ${at}\nsite tables leaps 20 at ${at}`;
    expect(of(text("50s")).verdict.kind).toBe("insufficient-evidence");
    expect(of(text("35s")).verdict.kind).toBe("cache-plateau");
  });

  test("an estimate with an error of half its value is not reported either", () => {
    const evidence = evidenceOf(`minute 0.5\n${service}\n${leak}8`);
    const sites = evidence.sites?.sites.map((site) => ({
      ...site,
      standardErrorBytes: (site.liveBytes.at(-1) ?? 0) / 2,
    }));
    const coarse = { ...evidence, sites: { ...evidence.sites, sites } } as typeof evidence;
    expect(diagnose(coarse).verdict.kind).toBe("steady");
  });

  test("less than half a MiB a minute, or temporary growth, is not reported", () => {
    expect(of(`minute 0.5\n${service}\nsite note keeps 0.005/s samples=4`).verdict.kind).toBe(
      "steady",
    );
    expect(of(`minute 0.5\n${service}`).verdict.kind).toBe("steady");
  });
});

describe("numbers stored as separate objects", () => {
  test("millions of numbers at one site: advice, but no leak", () => {
    const text = "anonRssBytes 100\nsite load fills 64 by 5s objects=2000000";
    const { verdict, advice } = of(text);
    expect(verdict.kind).toBe("steady");
    expect(advice.find(({ id }) => id === "TM-A080")?.text).toMatch(
      /^Store the numbers that load \(app\.py:\d+\) creates in an array/,
    );
    expect(saying(text, "boxed-numbers")?.detail).toContain("2,000,000 numbers");
  });

  test("by census, without an agent", () => {
    const { advice } = of("anonRssBytes 100\ncensus int 700");
    expect(advice.map(({ id }) => id)).toEqual(["TM-A080"]);
    expect(advice[0]?.text).toMatch(
      /^Store the int objects in an array .*: as separate objects they take 700 MiB, in an array 5\.6 MiB\.$/,
    );
  });

  test("large objects, few objects, and little memory do not count", () => {
    for (const site of ["64 by 5s objects=900000", "6 by 5s objects=190000", "64 by 5s"]) {
      expect(saying(`anonRssBytes 100\nsite load fills ${site}`, "boxed-numbers")).toBeUndefined();
    }
  });
});
