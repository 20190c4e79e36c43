import { describe, expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { diagnose } from "./verdict.js";

const diagnosed = (text: string) => diagnose(evidenceOf(text));
const kinds = (text: string) => {
  const { verdict, alsoFound = [] } = diagnosed(text);
  return [verdict.kind, ...alsoFound.map(({ kind }) => kind)];
};

describe("two causes", () => {
  const leak = (rate: number) => `site record keeps ${rate}/s`;
  const files = (rate: number) => `fileRssBytes 10 + ${rate}/s\nvmsBytes 300 + ${rate}/s`;
  const program = (inSites: number, inFiles: number) =>
    `rssBytes 50 + ${inSites + inFiles}/s\nanonRssBytes 40 + ${inSites}/s\n${leak(inSites)}\n${files(inFiles)}`;

  test("the larger one is the verdict, the other one is listed with its share", () => {
    expect(kinds(program(2, 0.5))).toEqual(["python-leak", "file-growth"]);
    expect(kinds(program(0.5, 2))).toEqual(["file-growth", "python-leak"]);
    const [other] = diagnosed(program(2, 0.5)).alsoFound ?? [];
    expect(other?.share).toBeCloseTo(0.2, 1);
    expect(other?.summary).toMatch(/^Mapped files accumulate: .*1\.8 GiB\/h\.$/);
  });

  test("a cause of less than a tenth is left out", () => {
    expect(kinds(program(4, 0.2))).toEqual(["python-leak"]);
  });

  test("a cache that fills in addition to a leak is not the verdict, but is listed", () => {
    const text = `anonRssBytes 40 + 2/s\n${leak(0.6)}\nsite cache keeps 1.4/s
      holder cache held=40 path=app>cache type=lru_cache entries=900 bound=9000 retained=80`;
    expect(kinds(text)).toEqual(["python-leak", "cache-plateau"]);
    expect(diagnosed(text).suspects.map(({ stack }) => stack[0]?.function)).toEqual(["record"]);
  });

  test.each([
    ["is full", 30, /^cache \(app\.py:\d+\) filled to 60 MiB and no longer grows\.$/],
    ["still rises slowly", 48, /^cache \(app\.py:\d+\) /],
  ])("a cache without a bound that %s is listed beside the leak", (_what, fullAt, sentence) => {
    const text = `anonRssBytes 40 + 1.2/s\n${leak(0.6)}\nsite cache fills 60 by ${fullAt}s`;
    const { alsoFound = [], suspects } = diagnosed(text);
    expect(kinds(text)).toEqual(["python-leak", "cache-plateau"]);
    expect(alsoFound[0]?.summary).toMatch(sentence);
    expect(alsoFound[0]?.share).toBeGreaterThan(0.3);
    const shares = suspects.reduce((sum, { share }) => sum + share, alsoFound[0]?.share ?? 0);
    expect(shares).toBeLessThan(1.02);
  });

  test("what was loaded before growth is measured is not part of the growth", () => {
    const text = `anonRssBytes 60 + 0.6/s\n${leak(0.6)}\nsite cache fills 20 by 5s`;
    expect(kinds(text)).toEqual(["python-leak"]);
  });

  test("most of the growth is free memory in the allocator, even if a small container grows as well", () => {
    const text = "anonRssBytes 40 + 2/s\nsite record keeps 0.3/s\nsite work churns 10";
    expect(kinds(text)).toEqual(["allocator-retention", "python-leak"]);
  });

  test("leaked files are listed even if a list takes nearly all of the memory", () => {
    const text = `anonRssBytes 40 + 2/s\nopenFiles 10 + 1/s\n${leak(2)}`;
    expect(kinds(text)).toEqual(["python-leak", "handle-leak"]);
  });
});

describe("handles that leak beside a larger leak of the same function", () => {
  const text = (path: string) => `anonRssBytes 40 + 2/s
    openSockets 5 + 2/s
    site request keeps 2/s
    holder request held=40 path=${path} type=list entries=900 bound=0
    holder socket.socket made=request held=40 path=app>pool type=list entries=900 bound=0`;

  test("are also listed if something else holds the memory", () => {
    expect(kinds(text("log>handlers"))).toEqual(["python-leak", "handle-leak"]);
    expect(kinds(text("app>pool"))).toEqual(["handle-leak"]);
  });
});

describe("the rate in the verdict", () => {
  test("is the suspect's if the whole program grows by far more", () => {
    const { verdict, suspects } = diagnosed(`anonRssBytes 40 + 0.5/s
      rssBytes 60 + 8.5/s
      fileRssBytes 10 + 8/s
      vmsBytes 900
      site record keeps 0.5/s`);
    expect(verdict.kind).toBe("python-leak");
    expect(verdict.summary).toMatch(/1\.8 GiB\/h, out of 30 GiB\/h for the whole program\.$/);
    expect(suspects[0]?.share).toBeCloseTo(0.5 / 8.5, 2);
  });

  test("is the program's if the suspects explain it", () => {
    const { verdict } = diagnosed("anonRssBytes 40 + 2/s\nsite record keeps 2/s");
    expect(verdict.summary).toMatch(/; 7\.0 GiB\/h\.$/);
  });
});

describe("a rise that begins in the last third of the window", () => {
  const rise = "anonRssBytes 40 begins 1/s at 45s";

  test.each([
    ["nothing else is known", ""],
    ["a site keeps what it makes since then", "site record begins 1/s at 45s"],
    [
      "the ledger sees it in malloc",
      "ledger.malloc.used 10 begins 1/s at 45s\nsite parse churns 5",
    ],
    ["a cache filled before", "site cache fills 20 by 10s"],
  ])("is never called harmless: %s", (_what, more) => {
    const { verdict } = diagnosed(`${rise}\n${more}`);
    expect(["insufficient-evidence", "python-leak"]).toContain(verdict.kind);
    expect(verdict.summary).not.toMatch(/has been flat|no longer grows|No site allocates/);
  });

  test("is called steady if it is too small to be significant", () => {
    expect(diagnosed("anonRssBytes 40 begins 0.05/s at 45s").verdict.kind).toBe("steady");
  });
});

describe("growth that no rule explains", () => {
  test("leaves the verdict undecided, with the rate and the window that would settle it", () => {
    const { verdict } = diagnosed(
      "anonRssBytes 340 + 0.16/s\nrssBytes 340 + 0.16/s\nsite parse churns 5",
    );
    expect(verdict.kind).toBe("insufficient-evidence");
    expect(verdict.summary).toMatch(/RSS grows by 5\d\d MiB\/h(?: \(.*\))?, to .* would settle it/);
  });
});

describe("the confidence of a harmless verdict", () => {
  test("depends on the length of the window", () => {
    const sure = (minutes: number) =>
      diagnosed(`minute ${minutes}\nanonRssBytes 60\nsite parse churns 5`).verdict.confidence;
    expect(sure(0.33)).toBeLessThan(sure(1));
    expect(sure(1)).toBeLessThan(sure(3));
    expect(sure(10)).toBe(0.95);
  });
});
