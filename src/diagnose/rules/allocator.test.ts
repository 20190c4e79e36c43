import { describe, expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { ruleFinding, verdict } from "../verdict/verdict.fixture.js";
import { diagnose } from "../verdict/verdict.js";

/** Memory still grows, so the verdict stays open, and it states that older blocks are being filled. */
function filling(text: string): boolean {
  const { kind, summary } = diagnose(evidenceOf(text)).verdict;
  expect(kind).toBe("insufficient-evidence");
  return summary.includes("existing blocks are being written for the first time");
}

describe("allocator", () => {
  test("private memory grows, live memory does not", () => {
    expect(verdict("anonRssBytes 40 + 1/s\nsite work churns 10")).toBe("allocator-retention");
  });

  test("live bytes are too uncertain to exclude their growth", () => {
    const text = "anonRssBytes 40 + 1/s\nsite work churns 10";
    expect(ruleFinding("allocator", `${text} error=8`)?.says).toBe("leak");
    expect(ruleFinding("allocator", `${text} error=12`)?.says).toBe("silent");
  });

  test("a peak that was freed and not reached again", () => {
    const text = "anonRssBytes 40 steps 80 at 30s\nsite work churns 5";
    expect(ruleFinding("allocator", text)).toMatchObject({ kind: "allocator-retention" });
    expect(verdict(text.replace("30s", "10s"))).not.toBe("allocator-retention"); // the start's
  });

  test("the few objects kept between freed blocks are named", () => {
    const text = "anonRssBytes 40 + 1/s\nsite work churns 10\nsite note keeps 0.02/s samples=9";
    const { verdict: diagnosed, suspects } = diagnose(evidenceOf(text));
    expect(diagnosed.kind).toBe("allocator-retention");
    expect(diagnosed.summary).toContain(
      "objects that note (app.py:7) keeps lie between freed blocks; 3.5 GiB/h",
    );
    expect(suspects).toMatchObject([
      { stack: [{ function: "note" }], advice: [{ id: "TM-A040" }] },
    ]);
  });

  test("kept objects that no longer grow are named as well", () => {
    const text = "anonRssBytes 40 + 1/s\nsite work churns 10\nsite index fills 4 by 40s";
    const { verdict: diagnosed, suspects } = diagnose(evidenceOf(text));
    expect(diagnosed.kind).toBe("allocator-retention");
    expect(suspects).toMatchObject([{ stack: [{ function: "index" }] }]);
  });

  test("growth that the ledger finds elsewhere is not the allocator's", () => {
    const text =
      "anonRssBytes 40 + 1/s\nrssBytes 40 + 1/s\nsite work churns 10\nledger.malloc.free 5\nledger.python.free 1\nledger.python.used 9";
    expect(verdict(`${text}\nledger.malloc.free 5 + 1/s`)).toBe("allocator-retention");
    expect(ruleFinding("allocator", text)?.says).toBe("silent");
    // Pages requested from the kernel directly; an older block that is filled at last.
    expect(verdict(`${text}\nledger.anon.other 1 + 1/s`)).toBe("native-leak");
    expect(filling(`${text}\nledger.malloc.used 9 + 1/s`)).toBe(true);
  });

  test("a library's growing pool fills steadily: the site that allocates it is the leak", () => {
    const rss = "rssBytes 40 + 1/s\nanonRssBytes 40 + 1/s\nledger.malloc.used 9 + 1/s";
    const pool = "site parse pools 10 at 25s 45s objects=6 samples=5 domain=native";
    const { verdict: diagnosed, suspects } = diagnose(
      evidenceOf(`${rss}\nsite work churns 9\n${pool}`),
    );
    expect(diagnosed.kind).toBe("native-leak");
    expect(suspects).toMatchObject([{ stack: [{ function: "parse" }] }]);
    expect(verdict(`${rss}\n${pool}\nholder parse held=40 path=app>schemas`)).toBe("python-leak");
    // It was allocated at the start, or is smaller than the filled memory: earlier memory.
    expect(filling(`${rss}\n${pool.replace("25s 45s", "4s 9s")}`)).toBe(true);
    expect(filling(`${rss}\n${pool.replace("10", "3")}`)).toBe(true);
  });

  test("samples that are too rare do not clear a site", () => {
    const text = "rssBytes 40 + 0.2/s\nanonRssBytes 40 + 0.2/s\nledger.malloc.used 9 + 0.2/s";
    expect(filling(`${text}\nsite work churns 10 error=0.5`)).toBe(true);
    expect(filling(`${text}\nsite work churns 10 samples=6 error=8`)).toBe(false);
    const sure = `${text}\nsite work churns 10 error=0.5`;
    expect(filling(`${sure}\nperiodBytes 0.06`)).toBe(true);
    expect(filling(`${sure}\nperiodBytes 4`)).toBe(false);
  });

  test("the few ledgers of a short window show it as well", () => {
    const text = `anonRssBytes 40 + 1/s
      site work churns 10
      ledgers 3s 6s 12s 24s
      ledger.python.free 1
      ledger.python.used 9`;
    expect(verdict(`${text}\nledger.anon.other 9\nledger.malloc.free 5 + 1/s`)).toBe(
      "allocator-retention",
    );
    // Without a cache in front of the allocator, all of its memory may be live.
    expect(verdict(`${text}\nledger.anon.other 9 + 1/s\nledger.malloc.free 5`)).toBe("native-leak");
  });

  test("live memory explains the growth", () => {
    const text = "anonRssBytes 40 + 1/s\nsite work keeps 1/s";
    expect(ruleFinding("allocator", text)?.says).toBe("silent");
  });
});
