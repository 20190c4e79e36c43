import { describe, expect, test } from "vitest";
import { VERDICT_KINDS } from "../../model/documents/diagnosis_document.js";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { ruleSays, verdict } from "../verdict/verdict.fixture.js";
import { diagnose } from "../verdict/verdict.js";
import { ADVICE } from "../wording/advice.js";

describe("age-cohorts", () => {
  test("a site that keeps what it makes is a leak, its line the first suspect", () => {
    const text = "anonRssBytes 40 + 1/s\nsite record keeps 1/s\nsite parse churns 30";
    expect(ruleSays("age-cohorts", text)).toMatchObject({ says: "leak", kind: "python-leak" });
    const { verdict, suspects, growth } = diagnose(evidenceOf(text));
    expect(verdict.kind).toBe("python-leak");
    expect(suspects).toHaveLength(1);
    expect(suspects[0]?.stack[0]?.function).toBe("record");
    expect(growth.bytesPerHour / 2 ** 20).toBeCloseTo(3600, -2);
    expect(growth.low).toBeLessThanOrEqual(growth.bytesPerHour);
    expect(growth.high).toBeGreaterThanOrEqual(growth.bytesPerHour);
    expect(verdict.summary).toContain("record (app.py:7)");
  });

  test("what only passes through accuses nobody", () => {
    const text = "anonRssBytes 60\nsite parse churns 30";
    expect(ruleSays("age-cohorts", text)).toMatchObject({ says: "silent" });
    expect(verdict(text)).toBe("steady");
  });

  test("under a megabyte, or in few samples, is no suspect", () => {
    expect(ruleSays("age-cohorts", "anonRssBytes 60\nsite log keeps 0.01/s")?.says).toBe("silent");
    const few = "anonRssBytes 60\nsite log keeps 1/s samples=5";
    expect(ruleSays("age-cohorts", few)?.says).toBe("silent");
  });

  test("few samples may speak where RSS shows the growth", () => {
    const text = "anonRssBytes 60 + 1/s\nsite log keeps 1/s samples=8";
    expect(ruleSays("age-cohorts", text)).toMatchObject({ says: "leak", weight: 0.7 });
  });

  test("one block that is made anew, larger each time, has no old survivors and leaks all the same", () => {
    const text = "anonRssBytes 40 + 1/s\nsite append swells 1/s domain=native file=/lib/numpy/a.py";
    expect(verdict(`${text} copied=4`)).toBe("python-leak");
    // Small objects that stand at the same site hide no block.
    expect(verdict(`${text} copied=4 beside=20000`)).toBe("python-leak");
    expect(ruleSays("age-cohorts", text)).toMatchObject({ says: "leak", weight: 0.8 });
    expect(verdict(text)).toBe("python-leak");
    // Gone before it could be looked up: nobody's, for the moment.
    expect(verdict(`${text}\nholder append held=0`)).toBe("python-leak");
    expect(verdict(text.replace("40 + 1/s", "80"))).toBe("steady");
  });

  test("without an agent it says nothing at all", () => {
    expect(ruleSays("age-cohorts", "anonRssBytes 60 + 1/s")).toBeNull();
  });
});

describe("plateau and bounded-holder", () => {
  test("modules that were imported are no cache", () => {
    expect(verdict("anonRssBytes 60\nsite <module> fills 20 by 30s imports=yes")).toBe("steady");
  });

  test("a cache that filled is a plateau", () => {
    expect(verdict("anonRssBytes 60\nsite cache fills 20 by 30s")).toBe("cache-plateau");
  });

  test("a cache that still fills is none, unless its holder carries a bound", () => {
    const filling = "anonRssBytes 60 + 1/s\nsite cache keeps 1/s";
    expect(verdict(filling)).toBe("python-leak");
    const bounded = `${filling}\nholder cache held=40 path=app>cache type=lru_cache entries=900 bound=1000`;
    expect(ruleSays("bounded-holder", bounded)).toMatchObject({ says: "no leak" });
    expect(verdict(bounded)).toBe("cache-plateau");
    expect(verdict(bounded.replace("bound=1000", "bound=0"))).toBe("python-leak");
    // What it holds is held against what was live then: it may have filled since.
    const little = bounded.replace("bound=1000", "bound=1000 retained=3");
    expect(verdict(little)).toBe("python-leak");
    expect(verdict(`${little} at=5s`)).toBe("cache-plateau");
  });

  test("a bound acquits nothing but what it bounds", () => {
    const holder =
      "holder cache held=40 path=app>cache type=deque entries=900 bound=1000 retained=60";
    const little = `anonRssBytes 60 + 1/s\nsite cache keeps 0.05/s\n${holder}`;
    expect(verdict(little)).toBe("allocator-retention");
    // It was full at half of the time, and what it holds grows on.
    const full = `anonRssBytes 60 + 1/s\nsite cache keeps 1/s\n${holder.replace("900", "1000")}`;
    expect(verdict(`${full} at=30s`)).toBe("python-leak");
    expect(verdict(`${full} at=58s`)).toBe("cache-plateau");
  });
});

describe("garbage-cycles", () => {
  const growing = "anonRssBytes 40 + 1/s\nsite parse keeps 1/s";

  test("what is unreachable, with the collector off", () => {
    const text = `${growing}\nholder parse garbage=38\ncollector off`;
    expect(ruleSays("garbage-cycles", text)?.detail).toContain("switched off");
    expect(verdict(text)).toBe("cycle-garbage");
  });

  test("what is unreachable though the collector runs: it was frozen", () => {
    const found = diagnose(evidenceOf(`${growing}\nholder parse garbage=38`));
    expect(found.verdict.kind).toBe("cycle-garbage");
  });

  test("the collector is off, but what grows is reachable: a plain leak", () => {
    expect(verdict(`${growing}\nholder parse held=39\ncollector off`)).toBe("python-leak");
  });
});

describe("native-memory", () => {
  const growing = "anonRssBytes 40 + 1/s\nsite encode keeps 1/s domain=native";

  test("no library is loaded whose objects would hold it", () => {
    expect(verdict(growing)).toBe("native-leak");
  });

  test("looked up, and no object refers to it", () => {
    const found = diagnose(evidenceOf(`${growing}\nholder encode held=1`));
    expect(found.verdict.kind).toBe("native-leak");
    expect(found.verdict.confidence).toBeGreaterThan(0.9);
  });

  test("looked up, and held: an array's buffer", () => {
    const held = `${growing}\nholder encode held=39 path=app>results type=list entries=70`;
    expect(verdict(held)).toBe("python-leak");
    const { suspects } = diagnose(evidenceOf(held));
    expect(suspects[0]?.holder?.path).toEqual(["app", "results"]);
    expect(suspects[0]?.advice[0]?.id).toBe("TM-A001");
  });
});

describe("autograd-graph", () => {
  const torch = "anonRssBytes 400 + 1/s\nsite step keeps 1/s domain=native";

  test("results of several operations of a pass grow together", () => {
    expect(verdict(`${torch} file=/lib/torch/nn/functional.py`)).toBe("graph-retention");
  });

  test("making modules is no pass", () => {
    expect(verdict(`${torch} file=/lib/torch/serialization.py`)).not.toBe("graph-retention");
  });

  test("a lookup decides where there is one", () => {
    const text = `${torch} file=/lib/torch/nn/functional.py\nholder step held=40 graph=0`;
    expect(verdict(text)).toBe("python-leak");
  });
});

describe("suspects", () => {
  test("beside a library's the program's own, however little, that gather in the same place", () => {
    const text = `anonRssBytes 40 + 1/s
      site run_task keeps 1/s own=no
      site remember keeps 0.05/s samples=6
      site elsewhere keeps 0.05/s samples=6
      holder run_task held=40 path=app>seen type=list entries=900 bound=0
      holder remember held=6 path=app>seen type=list entries=900 bound=0
      holder elsewhere held=6 path=app>others type=list entries=900 bound=0`;
    const functions = (evidence: string) =>
      diagnose(evidenceOf(evidence)).suspects.map(({ stack }) => stack[0]?.function);
    expect(functions(text)).toEqual(["run_task", "remember"]);
    // Where the program's own code is accused by itself, nothing is added.
    expect(functions(text.replace(" own=no", ""))).toEqual(["run_task"]);
  });
});

describe("handles", () => {
  test("descriptors that only become more", () => {
    const text = "anonRssBytes 40\nopenFiles 10 + 2/s";
    expect(ruleSays("handles", text)?.detail).toContain("120 a minute");
    expect(verdict(text)).toBe("handle-leak");
    expect(verdict("anonRssBytes 40\nopenFiles 10 + 2/s\nopenSockets 5 + 2/s")).toBe("handle-leak");
    expect(verdict("anonRssBytes 40\nthreads 4 + 1/s")).toBe("handle-leak");
  });

  test("a pool that filled is none", () => {
    expect(ruleSays("handles", "anonRssBytes 40\nopenFiles 4 steps 20 at 5s")?.says).toBe("silent");
    expect(ruleSays("handles", "anonRssBytes 40\nopenFiles 10 + 0.1/s")?.says).toBe("silent");
  });
});

describe("parts of RSS that the kernel tells apart", () => {
  test("mapped files and their mappings grow", () => {
    const text = "anonRssBytes 40\nfileRssBytes 10 + 1/s\nvmsBytes 300 + 1/s";
    expect(verdict(text)).toBe("file-growth");
  });

  test("who maps them, and what holds the mappings", () => {
    const text = `anonRssBytes 40
      fileRssBytes 10 + 1/s
      vmsBytes 300 + 1/s
      site read_index keeps 0.01/s
      mapping open_part keeps 1/s
      mapping load_table churns 30
      holder read_index held=40 path=app>rows type=list entries=900 bound=0`;
    const { suspects, verdict: found } = diagnose(evidenceOf(text));
    expect(found.kind).toBe("file-growth");
    expect(suspects.map(({ stack, domain }) => [stack[0]?.function, domain])).toEqual([
      ["open_part", "files"],
    ]);
    expect(suspects[0]?.holder).toBeUndefined();
    expect(found.summary).toContain("open_part (app.py:7) is where they come from");
  });

  test("one mapping that is made anew, larger each time: who mapped it", () => {
    const text = `anonRssBytes 40
      fileRssBytes 10 + 1/s
      vmsBytes 300 + 1/s
      mapping open_journal swells 1/s`;
    const { suspects, verdict: found } = diagnose(evidenceOf(text));
    expect(found.kind).toBe("file-growth");
    expect(suspects.map(({ stack }) => stack[0]?.function)).toEqual(["open_journal"]);
  });

  test("mappings that are kept are no leak where their pages do not grow", () => {
    expect(verdict("anonRssBytes 40\nmapping open_part keeps 1/s")).toBe("steady");
  });

  test("one mapping that is read is no leak", () => {
    const text = "anonRssBytes 40\nfileRssBytes 10 + 1/s\nvmsBytes 300";
    expect(ruleSays("mapped-files", text)?.says).toBe("no leak");
    expect(verdict(text)).not.toBe("file-growth");
    // Nor where the ledger shows the same pages, and all of RSS grows beyond doubt: it says what is read.
    const whole = `${text}\nrssBytes 60 + 1/s\nledger.file.mapped 10 + 1/s`;
    expect(ruleSays("ledger-parts", whole)?.says).toBe("silent");
    expect(diagnose(evidenceOf(whole)).verdict).toMatchObject({
      kind: "warm-up",
      summary: expect.stringMatching(
        /^Files that are mapped already are being read: .* 3\.5 GiB\/h more/,
      ),
    });
  });

  test("shared memory, mapped or left behind", () => {
    expect(verdict("anonRssBytes 40\nshmemRssBytes 1 + 1/s")).toBe("shm-growth");
    expect(verdict("anonRssBytes 40\nshmUsedBytes 1 + 1/s\nshmemRssBytes 2 steps -1 at 5s")).toBe(
      "shm-growth",
    );
    expect(verdict("anonRssBytes 40\nshmemRssBytes 900")).toBe("steady");
  });

  test("what another program leaves in /dev/shm is none of this one's", () => {
    const text = "anonRssBytes 40\nshmUsedBytes 1 + 1/s\nshmemRssBytes 0 steps 1 at 5s";
    expect(ruleSays("shared-memory", text)?.detail).toContain("another program");
    expect(verdict(text)).toBe("steady");
    expect(verdict(`${text}\nmapping read_part churns 0.01`)).toBe("steady");
    expect(verdict(`${text}\nwrittenBytes 40 + 0.1/s`)).toBe("steady");
    expect(verdict(`${text}\nwrittenBytes 40 + 9/s`)).toBe("steady");
  });

  test("blocks that were closed at once and never unlinked are their maker's", () => {
    const text =
      "anonRssBytes 40\nshmUsedBytes 1 + 1/s\nshmemRssBytes 1\nmapping publish passes 1/s";
    expect(diagnose(evidenceOf(text)).suspects[0]?.stack[0]?.function).toBe("publish");
    expect(verdict(text)).toBe("shm-growth");
  });

  test("files that are written to /dev/shm and left there", () => {
    const text =
      "anonRssBytes 40\nshmUsedBytes 1 + 1/s\nwrittenBytes 9 + 1.1/s\nsite spool keeps 0.001/s";
    expect(verdict(text)).toBe("shm-growth");
    expect(diagnose(evidenceOf(text)).suspects[0]?.stack[0]?.function).toBe("spool");
  });
});

const FORKED = `anonRssBytes 400
  child 43 rssBytes 400
  child 43 ussBytes 10 + 2/s
  child 43 anonRssBytes 390
  forked 43 5s
  site load fills 100 by 0.1s objects=900000
  site settings fills 20 by 0.1s objects=100000`;

describe("children", () => {
  test("a worker that grows", () => {
    const text = "anonRssBytes 40\nchild 43 anonRssBytes 20 + 1/s\nsite work keeps 1/s pid=43";
    expect(verdict(text)).toBe("child-growth");
    expect(diagnose(evidenceOf(text)).suspects[0]?.pid).toBe(43);
  });

  test("pages that turn private are no growth of the child's", () => {
    const text =
      "anonRssBytes 400\nchild 43 rssBytes 400\nchild 43 ussBytes 10 + 2/s\nchild 43 anonRssBytes 390";
    expect(verdict(text)).toBe("copy-on-write");
    expect(verdict(text.replace("10 + 2/s", "10"))).toBe("steady");
  });

  test("of what was there before the fork, what has reference counts in most pages is named first", () => {
    const text = `${FORKED}
      site weights fills 200 by 0.1s objects=2
      site buffers fills 200 by 0.1s objects=90000 domain=native
      site libraries fills 150 by 0.1s objects=900000 imports=yes
      site index fills 20 by 0.1s objects=100000 samples=4
      site chance fills 20 by 0.1s objects=100000 samples=1
      site requests churns 50 objects=90000`;
    const { verdict: told, suspects } = diagnose(evidenceOf(text));
    expect(told.summary).toContain("above all what load (app.py:7) had made before the fork");
    expect(suspects.map(({ stack }) => stack[0]?.function)).toEqual(["load", "settings", "index"]);
    expect(suspects[0]?.share).toBeCloseTo(100 / 140, 1);
  });

  test("pages that turn private in two children: a suspect's rate is shown for each", () => {
    const second = FORKED.slice(FORKED.indexOf("child 43"), FORKED.indexOf("  site load"))
      .replaceAll("43", "44")
      .replace("2/s", "1/s");
    const [load] = diagnose(evidenceOf(`${FORKED}\n${second}`)).suspects;
    expect(load?.processes?.map(({ pid }) => pid)).toEqual([43, 44]);
    const [most = 0, least = 0] = load?.processes?.map((each) => each.growthBytesPerHour) ?? [];
    expect(most / least).toBeCloseTo(2, 1);
    expect(most + least).toBeCloseTo(load?.growthBytesPerHour ?? 0, -2);
  });

  test("who reads it in the children stands behind who made most of it", () => {
    const text = `${FORKED}
      site requests churns 50
      site rank passes 3/s pid=43
      site log passes 0.1/s pid=43
      site forward passes 30/s own=no pid=43`;
    const { suspects } = diagnose(evidenceOf(text));
    expect(suspects.map(({ stack, pid, reads }) => [stack[0]?.function, pid, reads])).toEqual([
      ["load", 42, undefined],
      ["rank", 43, true],
      ["settings", 42, undefined],
    ]);
    expect(suspects.map(({ rank }) => rank)).toEqual([1, 2, 3]);
    expect(suspects[1]?.share).toBe(1);
  });
});

describe("who puts it there", () => {
  const text = "anonRssBytes 40 + 1/s\nsite parse keeps 1/s";
  const held = "holder parse held=40 path=app>.history entries=900 putter=keep";
  const leaves = (lines: string) =>
    diagnose(evidenceOf(lines)).suspects.map(({ stack, rank }) => [rank, stack[0]?.function]);

  test("is the first suspect, and stands in the sentence", () => {
    expect(leaves(`${text}\n${held}`)).toEqual([
      [1, "keep"],
      [2, "parse"],
    ]);
    const { summary } = diagnose(evidenceOf(`${text}\n${held}`)).verdict;
    expect(summary).toContain("app → .history holds them, keep (app.py:7) puts them there");
  });

  test("or stands behind who makes it and has it put there", () => {
    expect(leaves(`${text}\n${held} callers=serve,parse`)).toEqual([
      [1, "parse"],
      [2, "keep"],
    ]);
    expect(leaves(`${text}\n${held} callers=serve`)[0]).toEqual([1, "keep"]);
  });
});

describe("library-objects", () => {
  const rss = "rssBytes 60 + 1/s\nanonRssBytes 60 + 1/s\nledger.anon.other 9 + 1/s";
  const more = "census polars.Frame 0.05 + 0.002/s";
  const held = "holder polars.Frame library=yes held=40 path=app>frames entries=170";

  test("memory past malloc is held by the objects that become more as it does", () => {
    const { verdict: told, suspects } = diagnose(evidenceOf(`${rss}\n${more}\n${held}`));
    expect(told.kind).toBe("python-leak");
    expect(told.summary).toContain("polars.Frame objects above all; app → frames holds them");
    expect(suspects).toMatchObject([{ type: "polars.Frame", holder: { path: ["app", "frames"] } }]);
  });

  test("what keeps a little in the same place makes them", () => {
    const text = `${rss}\n${more}\n${held}
      site ingest keeps 0.01/s samples=9
      site parse keeps 0.01/s samples=9
      holder ingest held=40 path=app>frames>dict`;
    expect(diagnose(evidenceOf(text)).verdict.summary).toContain("made by ingest (app.py:7)");
    const elsewhere = text.replace("app>frames>dict", "app>log");
    expect(diagnose(evidenceOf(elsewhere)).verdict.summary).not.toContain("made by");
  });

  test("as many as before, held by nobody, or in a container with a bound: it may be anything", () => {
    const kinds = [
      `${rss}\ncensus polars.Frame 0.05\n${held}`,
      `${rss}\n${more}\n${held.replace("held=40", "held=4")}`,
      `${rss}\n${more}\n${held} bound=500`,
    ].map((text) => verdict(text));
    expect(kinds).toEqual(["native-leak", "native-leak", "native-leak"]);
  });

  test("sites that explain the growth are the better suspects", () => {
    const text = `${rss}\n${more}\n${held}\nsite record keeps 0.9/s`;
    expect(ruleSays("library-objects", text)).toBeNull();
  });
});

describe("without an agent", () => {
  test("growth of RSS alone asks for more evidence", () => {
    expect(verdict("anonRssBytes 40 + 1/s")).toBe("insufficient-evidence");
  });

  test("a rise at the start is a warm-up, a step no leak, nothing is steady", () => {
    expect(verdict("anonRssBytes 40 steps 60 at 5s")).toBe("warm-up");
    expect(verdict("anonRssBytes 40 steps 60 at 40s")).toBe("steady");
    expect(verdict("anonRssBytes 40")).toBe("steady");
  });

  test("a window of some seconds settles nothing, and the verdict says what would", () => {
    const { verdict, advice } = diagnose(evidenceOf("minute 0.1\nanonRssBytes 40 + 5/s"));
    expect(verdict.kind).toBe("insufficient-evidence");
    expect(advice[0]?.id).toBe("TM-A090");
  });
});

test("every kind of leak has advice, and every advice an id of its own", () => {
  expect(new Set(ADVICE.map(({ id }) => id)).size).toBe(ADVICE.length);
  const advised = new Set(ADVICE.flatMap(({ kinds }) => kinds));
  const calm = ["steady", "warm-up", "cache-plateau"];
  const leaks = VERDICT_KINDS.filter((kind) => !calm.includes(kind) && !kind.startsWith("gpu-"));
  expect(leaks.filter((kind) => !advised.has(kind))).toEqual([]);
});
