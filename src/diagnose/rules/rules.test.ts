import { describe, expect, test } from "vitest";
import { present } from "../../model/base/present.js";
import { VERDICT_KINDS } from "../../model/documents/diagnosis_document.js";
import type { FrameJson } from "../../model/documents/documents.js";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { headlineOf } from "../sites/headline_frame.js";
import { ruleFinding, verdict } from "../verdict/verdict.fixture.js";
import { diagnose } from "../verdict/verdict.js";
import { ADVICE } from "../wording/advice.js";
import { frameText } from "../wording/words.js";

describe("age-cohorts", () => {
  test("a site that keeps what it allocates is a leak, and its line the first suspect", () => {
    const text = "anonRssBytes 40 + 1/s\nsite record keeps 1/s\nsite parse churns 30";
    expect(ruleFinding("age-cohorts", text)).toMatchObject({ says: "leak", kind: "python-leak" });
    const { verdict, suspects, growth } = diagnose(evidenceOf(text));
    expect(verdict.kind).toBe("python-leak");
    expect(suspects).toHaveLength(1);
    expect(suspects[0]?.stack[0]?.function).toBe("record");
    expect(growth.bytesPerHour / 2 ** 20).toBeCloseTo(3600, -2);
    expect(growth.low).toBeLessThanOrEqual(growth.bytesPerHour);
    expect(growth.high).toBeGreaterThanOrEqual(growth.bytesPerHour);
    expect(verdict.summary).toContain("record (app.py:7)");
  });

  test("temporary objects do not create a suspect", () => {
    const text = "anonRssBytes 60\nsite parse churns 30";
    expect(ruleFinding("age-cohorts", text)).toMatchObject({ says: "silent" });
    expect(verdict(text)).toBe("steady");
  });

  test("a site under a megabyte, or with few samples, is not a suspect", () => {
    expect(ruleFinding("age-cohorts", "anonRssBytes 60\nsite log keeps 0.01/s")?.says).toBe(
      "silent",
    );
    const few = "anonRssBytes 60\nsite log keeps 1/s samples=5";
    expect(ruleFinding("age-cohorts", few)?.says).toBe("silent");
  });

  test("few samples suffice if RSS shows the growth", () => {
    const text = "anonRssBytes 60 + 1/s\nsite log keeps 1/s samples=8";
    expect(ruleFinding("age-cohorts", text)).toMatchObject({ says: "leak", weight: 0.7 });
  });

  test("one block that is replaced by larger ones has no old survivors and still leaks", () => {
    const text = "anonRssBytes 40 + 1/s\nsite append swells 1/s domain=native file=/lib/numpy/a.py";
    expect(verdict(`${text} copied=4`)).toBe("python-leak");
    // Small objects of the same site do not hide a block.
    expect(verdict(`${text} copied=4 beside=20000`)).toBe("python-leak");
    expect(ruleFinding("age-cohorts", text)).toMatchObject({ says: "leak", weight: 0.8 });
    expect(verdict(text)).toBe("python-leak");
    // It was freed before it could be looked up, so it has no holder for the moment.
    expect(verdict(`${text}\nholder append held=0`)).toBe("python-leak");
    expect(verdict(text.replace("40 + 1/s", "80"))).toBe("steady");
  });

  test("without an agent it returns nothing", () => {
    expect(ruleFinding("age-cohorts", "anonRssBytes 60 + 1/s")).toBeNull();
  });
});

describe("plateau and bounded-holder", () => {
  test("imported modules are not a cache", () => {
    expect(verdict("anonRssBytes 60\nsite <module> fills 20 by 30s imports=yes")).toBe("steady");
  });

  test("a full cache is a plateau", () => {
    expect(verdict("anonRssBytes 60 fills 20 by 30s\nsite cache fills 20 by 30s")).toBe(
      "cache-plateau",
    );
  });

  test("what replaces older entries of a cache, and adds nothing to memory, is none", () => {
    expect(verdict("anonRssBytes 60\nsite cache fills 20 by 30s")).toBe("steady");
  });

  test("a filling cache is not, unless its holder has a bound", () => {
    const filling = "anonRssBytes 60 + 1/s\nsite cache keeps 1/s";
    expect(verdict(filling)).toBe("python-leak");
    const bounded = `${filling}\nholder cache held=40 path=app>cache type=lru_cache entries=900 bound=1000`;
    expect(ruleFinding("bounded-holder", bounded)).toMatchObject({ says: "no leak" });
    expect(verdict(bounded)).toBe("cache-plateau");
    expect(verdict(bounded.replace("bound=1000", "bound=0"))).toBe("python-leak");
    // Its current contents are compared with what was live then, because it may have filled in the meantime.
    const little = bounded.replace("bound=1000", "bound=1000 retained=3");
    expect(verdict(little)).toBe("python-leak");
    expect(verdict(`${little} at=5s`)).toBe("cache-plateau");
  });

  test("a bound clears only the container that it bounds", () => {
    const holder =
      "holder cache held=40 path=app>cache type=deque entries=900 bound=1000 retained=60";
    const little = `anonRssBytes 60 + 1/s\nsite cache keeps 0.05/s\n${holder}`;
    expect(verdict(little)).toBe("allocator-retention");
    // It was full at half of the time, and its contents continue to grow.
    const full = `anonRssBytes 60 + 1/s\nsite cache keeps 1/s\n${holder.replace("900", "1000")}`;
    expect(verdict(`${full} at=30s`)).toBe("python-leak");
    expect(verdict(`${full} at=58s`)).toBe("cache-plateau");
  });
});

describe("garbage-cycles", () => {
  const growing = "anonRssBytes 40 + 1/s\nsite parse keeps 1/s";

  test("unreachable objects with the collector off", () => {
    const text = `${growing}\nholder parse garbage=38\ncollector off`;
    expect(ruleFinding("garbage-cycles", text)?.detail).toContain("switched off");
    expect(verdict(text)).toBe("cycle-garbage");
  });

  test("unreachable objects although the collector runs: they were frozen", () => {
    const found = diagnose(evidenceOf(`${growing}\nholder parse garbage=38`));
    expect(found.verdict.kind).toBe("cycle-garbage");
  });

  test("the collector is off, but the growing objects are reachable: a plain leak", () => {
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

  test("Python's own allocators are not called native code", () => {
    const detail = (sites: string) => {
      const { evidence } = diagnose(evidenceOf(`anonRssBytes 40 + 1/s\n${sites}`));
      return evidence.find(({ rule }) => rule === "native-memory")?.detail;
    };
    const python = "site encode keeps 1/s domain=python\nholder encode held=1";
    expect(detail(python)).toMatch(/ comes from Python's own allocators, and no Python object/);
    expect(detail(python)).not.toMatch(/native code/);
    const native = "site copy keeps 1/s domain=native\nholder copy held=1";
    expect(detail(native)).toMatch(
      / was allocated by native code, and no Python object was found that leads to it: .* a C library keeps it/,
    );
    expect(detail(`${python}\n${native}`)).toMatch(/native code or comes from Python's own/);
  });

  test("a lookup that found no holder does not show that nothing refers to the memory", () => {
    const python = "anonRssBytes 40 + 1/s\nsite tick keeps 1/s domain=python";
    const torn = `${python}\nholder tick held=0 unreferenced=3`;
    expect(verdict(torn)).toBe("python-leak");
    expect(ruleFinding("native-memory", torn)?.detail).toContain(
      "holder of the growing memory was",
    );
    expect(verdict(`${python}\nholder tick held=0 unreferenced=38`)).toBe("native-leak");
    expect(verdict(`${growing}\nholder encode held=0 unreferenced=3`)).toBe("python-leak");
  });

  test("looked up, and held: an array's buffer", () => {
    const held = `${growing}\nholder encode held=39 path=app>results type=list entries=70`;
    expect(verdict(held)).toBe("python-leak");
    const { suspects } = diagnose(evidenceOf(held));
    expect(suspects[0]?.holder?.path).toEqual(["app", "results"]);
    expect(suspects[0]?.advice[0]?.id).toBe("TM-A001");
  });

  test("looked up, and of one object: an in-memory database", () => {
    const of = (more: string) =>
      diagnose(
        evidenceOf(`${growing}\nholder encode held=39 path=app>db type=sqlite3.Connection ${more}`),
      );
    const { verdict: one, suspects } = of("retained=0.01");
    expect(one.summary).toMatch(
      /^Memory that a library keeps for one sqlite3.Connection object grows: allocated by encode .*; app → db keeps it; /,
    );
    expect(suspects[0]?.advice[0]?.id).toBe("TM-A026");
    // What is counted for the holder explains the memory, or it has entries.
    for (const more of ["retained=60", "retained=0.01 entries=9"]) {
      expect(of(more).verdict.summary).toMatch(/^Python objects accumulate: .* holds them;/);
    }
  });
});

describe("autograd-graph", () => {
  const torch = "anonRssBytes 400 + 1/s\nsite step keeps 1/s domain=native";

  test("results of several operations of a pass grow together", () => {
    expect(verdict(`${torch} file=/lib/torch/nn/functional.py`)).toBe("graph-retention");
  });

  test("the creation of modules is not a pass", () => {
    expect(verdict(`${torch} file=/lib/torch/serialization.py`)).not.toBe("graph-retention");
  });

  test("if there is a lookup, it decides", () => {
    const text = `${torch} file=/lib/torch/nn/functional.py\nholder step held=40 graph=0`;
    expect(verdict(text)).toBe("python-leak");
  });
});

describe("suspects", () => {
  test("in addition to a library's sites, the program's own sites in the same place, however small", () => {
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
    // If the program's own code is accused directly, nothing is added.
    expect(functions(text.replace(" own=no", ""))).toEqual(["run_task"]);
  });
});

describe("handles", () => {
  test("children that have ended and that nothing waits for", () => {
    const text = "anonRssBytes 40\nendedChildren 0 + 2/s";
    expect(ruleFinding("handles", text)?.detail).toBe(
      "The number of ended children that nothing waited for grows by 120 a minute, to 111 now, and none are released.",
    );
    const { verdict: zombies, advice } = diagnose(evidenceOf(text));
    expect(zombies.kind).toBe("handle-leak");
    expect(zombies.summary).toMatch(
      /^Child processes that have ended accumulate, .*\(zombies\): 111 now, 120 more a minute\.$/,
    );
    const beside = diagnose(evidenceOf("anonRssBytes 40 + 1/s\nendedChildren 0 + 2/s")).verdict;
    expect(beside.summary).toMatch(
      /120 more a minute; memory grows by .*, more than these explain/,
    );
    expect(advice[0]?.id).toBe("TM-A073");
  });

  test("descriptors whose number only rises", () => {
    const text = "anonRssBytes 40\nopenFiles 10 + 2/s";
    expect(ruleFinding("handles", text)?.detail).toContain("120 a minute");
    expect(verdict(text)).toBe("handle-leak");
    const sockets = diagnose(
      evidenceOf("anonRssBytes 40\nopenFiles 10 + 2/s\nopenSockets 5 + 2/s"),
    );
    expect(sockets.verdict.kind).toBe("handle-leak");
    expect(sockets.verdict.summary).toMatch(/^Open sockets are never closed: /);
    const threads = diagnose(evidenceOf("anonRssBytes 40\nthreads 4 + 1/s")).verdict;
    expect(threads.kind).toBe("handle-leak");
    expect(threads.summary).toMatch(/^Threads accumulate and do not end: /);
  });

  test("threads whose own memory is accused are not created where they allocate it", () => {
    const evidence = evidenceOf("anonRssBytes 40 + 1/s\nthreads 4 + 1/s\nsite watch keeps 1/s");
    const { summary } = diagnose(evidence).verdict;
    expect(summary).toMatch(/^Threads accumulate and do not end: created by watch/);
    const frames = present(evidence.sites?.sites[0]?.keptStacks[0]).frames as FrameJson[];
    frames.push({ ...present(frames[0]), function: "Thread._bootstrap", file: "threading.py" });
    expect(diagnose(evidence).verdict.summary).toMatch(
      /^Threads accumulate and do not end: most of them run watch/,
    );
  });

  test("connections that rise with the work are not accused", () => {
    const text = "anonRssBytes 40\nopenSockets 60 + 1/s\nsite parse serves 30 + 1/s";
    expect(ruleFinding("handles", text)?.detail).toContain("no more than the work");
    expect(verdict(text)).not.toBe("handle-leak");
    const few = text.replace("60 + 1/s", "3 + 1/s");
    expect(ruleFinding("handles", few)?.kind).toBe("handle-leak");
    expect(verdict(text.replace("serves 30 + 1/s", "churns 9"))).toBe("handle-leak");
    // With three samples before and five after, the same rise may be chance.
    expect(ruleFinding("handles", `${text}\nperiodBytes 0.06`)?.says).toBe("silent");
    expect(ruleFinding("handles", `${text}\nperiodBytes 200000`)?.kind).toBe("handle-leak");
  });

  test("a filled pool is not a leak", () => {
    expect(ruleFinding("handles", "anonRssBytes 40\nopenFiles 4 steps 20 at 5s")?.says).toBe(
      "silent",
    );
    expect(ruleFinding("handles", "anonRssBytes 40\nopenFiles 10 + 0.1/s")?.says).toBe("silent");
  });
});

describe("parts of RSS that the kernel distinguishes", () => {
  test("mapped files and their mappings grow", () => {
    const text = "anonRssBytes 40\nfileRssBytes 10 + 1/s\nvmsBytes 300 + 1/s";
    expect(verdict(text)).toBe("file-growth");
  });

  test("the site that maps them, and the holder of the mappings", () => {
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
    expect(found.summary).toContain("created by open_part (app.py:7)");
  });

  test("one mapping that is replaced by larger ones: the site that mapped it", () => {
    const text = `anonRssBytes 40
      fileRssBytes 10 + 1/s
      vmsBytes 300 + 1/s
      mapping open_journal swells 1/s`;
    const { suspects, verdict: found } = diagnose(evidenceOf(text));
    expect(found.kind).toBe("file-growth");
    expect(suspects.map(({ stack }) => stack[0]?.function)).toEqual(["open_journal"]);
  });

  test("kept mappings are not a leak if their pages do not grow", () => {
    expect(verdict("anonRssBytes 40\nmapping open_part keeps 1/s")).toBe("steady");
  });

  test("reading one mapping is not a leak", () => {
    const text = "anonRssBytes 40\nfileRssBytes 10 + 1/s\nvmsBytes 300";
    expect(ruleFinding("mapped-files", text)?.says).toBe("no leak");
    expect(verdict(text)).not.toBe("file-growth");
    // Nor if the ledger shows the same pages and RSS grows beyond doubt: the verdict names the files that are read.
    const whole = `${text}\nrssBytes 60 + 1/s\nledger.file.mapped 10 + 1/s`;
    expect(ruleFinding("ledger-parts", whole)?.says).toBe("silent");
    expect(diagnose(evidenceOf(whole)).verdict).toMatchObject({
      kind: "warm-up",
      summary: expect.stringMatching(
        /^Files that are already mapped are being read: .* growing by 3\.5 GiB\/h/,
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

  test("files of another program in /dev/shm are not attributed to this one", () => {
    const text = "anonRssBytes 40\nshmUsedBytes 1 + 1/s\nshmemRssBytes 0 steps 1 at 5s";
    expect(ruleFinding("shared-memory", text)?.detail).toContain("another program");
    expect(verdict(text)).toBe("steady");
    expect(verdict(`${text}\nmapping read_part churns 0.01`)).toBe("steady");
    expect(verdict(`${text}\nwrittenBytes 40 + 0.1/s`)).toBe("steady");
    expect(verdict(`${text}\nwrittenBytes 40 + 9/s`)).toBe("steady");
  });

  test("blocks that were closed at once and never unlinked belong to their creator", () => {
    const text =
      "anonRssBytes 40\nshmUsedBytes 1 + 1/s\nshmemRssBytes 1\nmapping publish passes 1/s";
    expect(diagnose(evidenceOf(text)).suspects[0]?.stack[0]?.function).toBe("publish");
    expect(verdict(text)).toBe("shm-growth");
  });

  test("who maps the blocks once more at the end, to unlink them, did not create them", () => {
    const evidence = evidenceOf(
      "anonRssBytes 40\nshmUsedBytes 1 + 1/s\nshmemRssBytes 1\nmapping publish passes 1/s\nmapping tidy passes 1/s",
    );
    const { sites: mappings = [], passing = [] } = evidence.mappings ?? {};
    const tidy = present([...mappings, ...passing].find(({ key }) => key.endsWith(" tidy")));
    tidy.allocatedBytes.fill(0, 0, -1);
    const { suspects } = diagnose(evidence);
    expect(suspects.map(({ stack }) => stack[0]?.function)).toEqual(["publish"]);
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

  test("pages that become private are not growth of the child", () => {
    const text =
      "anonRssBytes 400\nchild 43 rssBytes 400\nchild 43 ussBytes 10 + 2/s\nchild 43 anonRssBytes 390";
    expect(verdict(text)).toBe("copy-on-write");
    expect(verdict(text.replace("10 + 2/s", "10"))).toBe("steady");
  });

  test("pages still become private, though the last reading is long before the end", () => {
    const text =
      "anonRssBytes 400\nchild 43 rssBytes 400\nchild 43 ussBytes 12 + 0.9/s\nchild 43 anonRssBytes 390\nledgers 4s 10s 22s";
    const { verdict: found, evidence } = diagnose(evidenceOf(text));
    expect(found.kind).toBe("copy-on-write");
    const { detail = "" } = evidence.find(({ rule }) => rule === "copy-on-write") ?? {};
    expect(detail).toMatch(/became private, 4 % of their RSS/);
    expect(verdict(text.replace("0.9/s", "0.3/s"))).toBe("steady");
  });

  test("of the objects from before the fork, those with reference counts in most pages are named first", () => {
    const text = `${FORKED}
      site weights fills 200 by 0.1s objects=2
      site buffers fills 200 by 0.1s objects=90000 domain=native
      site libraries fills 150 by 0.1s objects=900000 imports=yes
      site index fills 20 by 0.1s objects=100000 samples=4
      site chance fills 20 by 0.1s objects=100000 samples=1
      site requests churns 50 objects=90000`;
    const { verdict: diagnosed, suspects } = diagnose(evidenceOf(text));
    expect(diagnosed.summary).toContain(
      "mostly objects that load (app.py:7) created before the fork",
    );
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

  test("readers in the children come after the main creator", () => {
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
    // After an attach, only readers are known: the advice is the verdict's.
    const attached = text.replace(/\n *site (?:load|settings|requests).*/g, "");
    const { suspects: readers, advice } = diagnose(evidenceOf(attached));
    expect(readers.map(({ reads }) => reads)).toEqual([true]);
    expect(advice.map(({ id }) => id)).toEqual(["TM-A060"]);
    expect(suspects[1]?.share).toBe(1);
  });
});

describe("functions that add items", () => {
  const text = "anonRssBytes 40 + 1/s\nsite parse keeps 1/s";
  const held = "holder parse held=40 path=app>.history entries=900 putter=keep";
  const leaves = (lines: string) =>
    diagnose(evidenceOf(lines)).suspects.map(({ stack, rank }) => [rank, stack[0]?.function]);

  test("is the first suspect, and is named in the sentence", () => {
    expect(leaves(`${text}\n${held}`)).toEqual([
      [1, "keep"],
      [2, "parse"],
    ]);
    const { summary } = diagnose(evidenceOf(`${text}\n${held}`)).verdict;
    expect(summary).toContain("app → .history holds them, added by keep (app.py:7)");
  });

  test("or is listed after the creator that calls it", () => {
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

  test("memory outside malloc is held by the objects that grow with it", () => {
    const { verdict: diagnosed, suspects } = diagnose(evidenceOf(`${rss}\n${more}\n${held}`));
    expect(diagnosed.kind).toBe("python-leak");
    expect(diagnosed.summary).toContain("mostly polars.Frame objects; app → frames holds them");
    expect(suspects).toMatchObject([{ type: "polars.Frame", holder: { path: ["app", "frames"] } }]);
    const { verdict: added } = diagnose(evidenceOf(`${rss}\n${more}\n${held} putter=ingest`));
    expect(added.summary).toContain("app → frames holds them, added by ingest (app.py:7);");
  });

  test("a site that keeps a little memory in the same place is their creator", () => {
    const text = `${rss}\n${more}\n${held}
      site ingest keeps 0.01/s samples=9
      site parse keeps 0.01/s samples=9
      holder ingest held=40 path=app>frames>dict`;
    expect(diagnose(evidenceOf(text)).verdict.summary).toContain("created by ingest (app.py:7)");
    const elsewhere = text.replace("app>frames>dict", "app>log");
    expect(diagnose(evidenceOf(elsewhere)).verdict.summary).not.toContain("made by");
  });

  test("a constant number, no holder, or a bounded container: no conclusion", () => {
    const kinds = [
      `${rss}\ncensus polars.Frame 0.05\n${held}`,
      `${rss}\n${more}\n${held.replace("held=40", "held=4")}`,
      `${rss}\n${more}\n${held} bound=500`,
    ].map((text) => verdict(text));
    expect(kinds).toEqual(["native-leak", "native-leak", "native-leak"]);
  });

  test("sites that explain the growth are the better suspects", () => {
    const text = `${rss}\n${more}\n${held}\nsite record keeps 0.9/s`;
    expect(ruleFinding("library-objects", text)).toBeNull();
  });
});

describe("without an agent", () => {
  test("growth of RSS alone asks for more evidence", () => {
    expect(verdict("anonRssBytes 40 + 1/s")).toBe("insufficient-evidence");
  });

  test("a rise at the start is a warm-up, a step is not a leak, no rise is steady", () => {
    expect(verdict("anonRssBytes 40 steps 60 at 5s")).toBe("warm-up");
    expect(verdict("anonRssBytes 40 steps 60 at 40s")).toBe("steady");
    expect(verdict("anonRssBytes 40")).toBe("steady");
  });

  test("a window of a few seconds is too short, and the verdict states the length that it needs", () => {
    const { verdict, advice } = diagnose(evidenceOf("minute 0.1\nanonRssBytes 40 + 5/s"));
    expect(verdict.kind).toBe("insufficient-evidence");
    expect(advice[0]?.id).toBe("TM-A090");
  });
});

test("every kind of leak has advice, and every piece of advice its own id", () => {
  expect(new Set(ADVICE.map(({ id }) => id)).size).toBe(ADVICE.length);
  const advised = new Set(ADVICE.flatMap(({ kinds }) => kinds));
  const calm = ["steady", "warm-up", "cache-plateau"];
  const leaks = VERDICT_KINDS.filter((kind) => !calm.includes(kind) && !kind.startsWith("gpu-"));
  expect(leaks.filter((kind) => !advised.has(kind))).toEqual([]);
});

test("memory of cells that IPython compiles one by one is of cells, and not of one of them", () => {
  const cell = (n: number) => `<ipython-input-${n}-ab${n}>`;
  const stacks = (numbers: readonly number[]) =>
    numbers.map((n) => ({
      id: n,
      share: 1 / numbers.length,
      frames: [{ function: "<module>", file: cell(n), line: 1, kind: "python" as const }],
    }));
  const history = evidenceOf("anonRssBytes 40 + 1/s\nsite cells keeps 1/s").sites?.sites[0];
  const named = (numbers: readonly number[]) =>
    frameText(headlineOf({ ...present(history), keptStacks: stacks(numbers) }));
  expect(named([4])).toBe("<module> (In [4]:1)");
  expect(named([4, 5, 6])).toBe("<module> (notebook cells)");
});
