import { describe, expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { observe } from "../evidence/observations.js";
import { verdict } from "../verdict/verdict.fixture.js";
import { diagnose } from "../verdict/verdict.js";
import { ledgerParts } from "./ledger_parts.rule.js";

const says = (text: string) => ledgerParts.judge(observe(evidenceOf(text)));

describe("ledger-parts", () => {
  const rss = "rssBytes 60 + 1/s\nanonRssBytes 60 + 1/s";

  test("the growing part gives the verdict if no site is known", () => {
    expect(verdict(`${rss}\nledger.python.used 20 + 1/s\nledger.malloc.used 20`)).toBe(
      "python-leak",
    );
    expect(verdict(`${rss}\nledger.python.used 20\nledger.malloc.used 20 + 1/s`)).toBe(
      "native-leak",
    );
    expect(verdict(`${rss}\nledger.malloc.free 5 + 1/s`)).toBe("allocator-retention");
  });

  test("unsampled memory: a site that keeps small objects at the same time may hold it", () => {
    const text = `${rss}\nledger.anon.other 9 + 1/s\nsite ingest keeps 0.01/s samples=9\nsite parse churns 9`;
    const { verdict: diagnosed, suspects } = diagnose(evidenceOf(text));
    expect(diagnosed.kind).toBe("native-leak");
    expect(diagnosed.summary).toContain("allocated by ingest (app.py:7); 3.5 GiB/h");
    expect(suspects).toMatchObject([{ stack: [{ function: "ingest" }], share: 1 }]);
    const nobody = diagnose(evidenceOf(text.replace("keeps 0.01/s", "churns 1")));
    expect(nobody.verdict.summary).toBe("Native memory is never freed: 3.5 GiB/h.");
    expect(nobody.suspects).toEqual([]);
  });

  test("early free memory proves nothing about the rest of the window", () => {
    const text = `${rss}\nledger.malloc.used 20`;
    const growing = "ledger.malloc.free 5 + 1/s";
    expect(verdict(`${text}\nledgers 10s 20s 40s\n${growing}`)).toBe("allocator-retention");
    expect(says(`${text}\nledgers 10s 20s 25s\n${growing}`)?.says).toBe("silent");
  });

  test("a rising load holds more objects, each as briefly as before", () => {
    const load = "site parse serves 5 + 0.7/s\nsite render serves 3 + 0.4/s";
    const text = `${rss}\nledger.python.used 20 + 1/s`;
    const { verdict: diagnosed, suspects } = diagnose(evidenceOf(`${text}\n${load}`));
    expect(diagnosed.kind).toBe("insufficient-evidence");
    expect(diagnosed.summary).toContain(
      "nothing is kept: parse (app.py:7) allocates more than before and frees it as quickly",
    );
    expect(suspects).toEqual([]);
    // They live longer and longer, or only one site has more work.
    expect(verdict(`${text}\n${load.replaceAll(/\/s/g, "/s lifetime=longer")}`)).toBe(
      "python-leak",
    );
    expect(verdict(`${text}\nsite parse serves 5 + 1/s\nsite render churns 900`)).toBe(
      "python-leak",
    );
    // Other memory of Python grows.
    expect(says(`${text}\n${load.replaceAll(/0\.\d/g, "0.1")}`)?.says).toBe("leak");
  });

  test("a site that has filled up explains the growth of Python's memory", () => {
    const text = `${rss}\nledger.python.used 20 + 1/s\nsite cache fills 60 by 40s`;
    expect(says(text)?.detail).toContain("Sites that have filled up hold it.");
    expect(says(text.replace("fills 60", "fills 5"))?.says).toBe("leak");
  });

  test("free memory that live allocations use at other times is not kept", () => {
    const text = `${rss}\nledger.python.free 5 begins 2/s at 50s`;
    expect(verdict(text)).toBe("allocator-retention");
    const used = `${text}\nsite parse serves 30 + 1/s\nsite render serves 20 + 0.1/s`;
    expect(says(used)?.says).toBe("silent");
    expect(verdict(used)).not.toBe("allocator-retention");
  });

  test("memory that only moves between parts proves nothing", () => {
    const text = "rssBytes 60\nledger.python.used 20 + 1/s\nledger.python.free 50";
    expect(says(text)?.says).toBe("silent");
  });
});

test("growth is not attributed to old blocks if a site allocated as much in part of the window", () => {
  const text = `anonRssBytes 40 begins 1/s at 45s
    ledger.malloc.used 10 begins 1/s at 45s
    site load leaps 15 at 46s`;
  expect(says(text)?.says).toBe("silent");
  // One that had filled before asked for none of it.
  const before = text.replace("leaps 15 at 46s", "fills 9 by 30s");
  expect(says(before)).toMatchObject({ says: "no leak", kind: "warm-up" });
});

describe("growth of malloc that no site shows", () => {
  const text = `rssBytes 40 + 1/s
    anonRssBytes 30 + 1/s
    ledger.malloc.used 10 + 1/s
    site poll churns 0.1`;

  test("new blocks come from calls that the agent does not see", () => {
    const { verdict: diagnosed, advice } = diagnose(evidenceOf(`${text}\nvmsBytes 300 + 1/s`));
    expect(diagnosed.kind).toBe("native-leak");
    expect(diagnosed.summary).toMatch(
      /3\.5 GiB\/h more in malloc, by calls .*resolved malloc before/,
    );
    expect(advice.map(({ id }) => id)).toEqual(["TM-A031"]);
  });

  test("blocks that existed before are written, while the address space does not grow", () => {
    expect(says(`${text}\nvmsBytes 300`)).toMatchObject({ says: "no leak", kind: "warm-up" });
    expect(verdict(`${text}\nvmsBytes 300`)).not.toBe("native-leak");
  });
});
