import { describe, expect, test } from "vitest";
import { verdict } from "../verdict/verdict.fixture.js";
import { diagnose } from "../verdict/verdict.js";
import { evidenceOf } from "./evidence.fixture.js";

const growing = "anonRssBytes 40 + 1/s\ncensus app.Session 5 + 0.8/s\ncensus str 9";

describe("beside an agent", () => {
  const text = `${growing}\nsite record keeps 1/s`;

  test("the sites are suspects, and the census shows the types that grow", () => {
    const { verdict, suspects, evidence, census } = diagnose(evidenceOf(text));
    expect(verdict.kind).toBe("python-leak");
    expect(suspects.map(({ type }) => type)).toEqual([undefined]);
    expect(evidence.find(({ rule }) => rule === "census-growth")).toMatchObject({
      says: "leak",
      detail: expect.stringMatching(/^Two censuses 56 s apart show growth: app\.Session by 45 MiB/),
    });
    expect(census?.types).toHaveLength(1);
    expect(census?.types[0]).toMatchObject({ type: "app.Session" });
    expect((census?.types[0]?.addedBytes ?? 0) / 2 ** 20).toBeCloseTo(44.8, 1);
  });

  test("a census alone makes nothing a suspect", () => {
    const { verdict, evidence } = diagnose(
      evidenceOf("anonRssBytes 90\nsite parse churns 5\ncensus app.Row 5 + 0.1/s"),
    );
    expect(verdict.kind).toBe("steady");
    expect(evidence.find(({ rule }) => rule === "census-growth")?.says).toBe("silent");
  });

  test("one census, or no growth, yields nothing", () => {
    const { census, evidence } = diagnose(
      evidenceOf("anonRssBytes 90\nsite parse churns 5\ncensus app.Row 60"),
    );
    expect(census).toBeUndefined();
    expect(evidence.some(({ rule }) => rule === "census-growth")).toBe(false);
  });
});

describe("without an agent, by census", () => {
  test("a type whose objects keep growing in number is a leak, reported with its holder", () => {
    const held = `${growing}\nholder app.Session held=40 path=app>sessions type=dict entries=900`;
    const { verdict, suspects, evidence, growth } = diagnose(evidenceOf(held));
    expect(verdict.kind).toBe("python-leak");
    expect(verdict.summary).toContain("mostly app.Session objects; app → sessions holds them");
    expect(suspects).toHaveLength(1);
    expect(suspects[0]).toMatchObject({ type: "app.Session", stack: [], ages: [] });
    expect(suspects[0]?.history.length).toBeGreaterThan(10);
    expect(suspects[0]?.advice[0]?.id).toBe("TM-A002");
    expect(evidence.find(({ rule }) => rule === "census-growth")?.detail).toContain(
      "objects, in app",
    );
    expect(growth.bytesPerHour / 2 ** 20).toBeCloseTo(3600, -1);
  });

  test("two censuses show the type that causes RSS growth, even if one is from the start", () => {
    const rss = "rssBytes 40 + 1/s\nledger.malloc.used 20 + 1/s";
    expect(verdict(`${rss}\n${growing}\ncensuses 4s 50s`)).toBe("python-leak");
    expect(verdict(`${rss}\n${growing}\ncensuses 4s`)).toBe("native-leak");
    expect(verdict("anonRssBytes 400\ncensus app.Row 5 + 0.1/s\ncensuses 4s 50s")).toBe("steady");
  });

  test("growth below RSS's thresholds is found if it appears in every census", () => {
    expect(verdict("anonRssBytes 400\ncensus app.Row 5 + 0.1/s")).toBe("python-leak");
    expect(verdict("anonRssBytes 400\ncensus app.Row 5 + 0.01/s")).toBe("steady");
  });

  test("loading data, a filling cache, freed batches and noise are not leaks", () => {
    expect(verdict("anonRssBytes 90\ncensus app.Row 5 steps 60 at 35s")).toBe("steady");
    expect(verdict("anonRssBytes 90\ncensus app.Row 5 fills 60 by 40s")).toBe("steady");
    expect(verdict("anonRssBytes 90\ncensus app.Row 5 batches 60 each 17s")).toBe("steady");
    expect(verdict("anonRssBytes 90\ncensus app.Row 60")).toBe("steady");
  });

  test("bounded containers and garbage are recognized", () => {
    const bounded = "holder app.Session held=40 path=app>cache type=lru_cache entries=9 bound=99";
    expect(verdict(`${growing}\n${bounded}`)).toBe("cache-plateau");
    expect(verdict(`${growing}\nholder app.Session garbage=38\ncollector off`)).toBe(
      "cycle-garbage",
    );
  });

  test("types that explain little of the growth leave the decision to the ledger", () => {
    const text =
      "rssBytes 60 + 1/s\nanonRssBytes 60 + 1/s\nledger.malloc.used 9 + 1/s\ncensus str 5 + 0.05/s";
    expect(verdict(text)).toBe("native-leak");
  });
});
