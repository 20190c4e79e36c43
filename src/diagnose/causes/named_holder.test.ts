import { expect, test } from "vitest";
import type { FrameJson } from "../../model/documents/documents.js";
import { handlesSite } from "../../model/profile/lookup_sites.js";
import { evidenceOf, FIXTURE_START_MS } from "../evidence/evidence.fixture.js";
import type { HolderEvidence } from "../evidence/evidence.js";
import { diagnose } from "../verdict/verdict.js";

const TARGET = 42;

function holder(site: string, path: readonly string[]): HolderEvidence {
  return {
    pid: TARGET,
    site,
    foundMs: FIXTURE_START_MS,
    madeAt: [],
    callers: [],
    looked: 40,
    held: 40,
    garbage: 0,
    graph: 0,
    unreferenced: null,
    entriesGrow: null,
    holder: { path: [...path], type: "dict", retainedBytes: 1_000_000, entries: 40 },
    bound: null,
  };
}

test("native memory is held by what holds the Python objects of the same function", () => {
  const evidence = evidenceOf(
    "anonRssBytes 40 + 1/s\nsite connect keeps 1/s domain=native file=/lib/numpy/a.py\nsite connect keeps 0.001/s",
  );
  const python = evidence.sites?.sites.find(({ domain }) => domain === "python");
  const holders = [holder(python?.key ?? "", ["module app", "connections"])];
  const { suspects } = diagnose({ ...evidence, holders });
  expect(suspects[0]).toMatchObject({ domain: "native" });
  expect(suspects[0]?.holder?.path).toEqual(["module app", "connections"]);
});

test("unsampled sockets are reported by type and holder", () => {
  const evidence = evidenceOf("openSockets 4 + 1/s\nopenFiles 9 + 1/s\nanonRssBytes 40");
  const holders = [holder(handlesSite(TARGET, "_socket.socket"), ["module app", "clients"])];
  const { verdict, suspects } = diagnose({ ...evidence, holders });
  expect(verdict.kind).toBe("handle-leak");
  expect(verdict.summary).toContain("mostly _socket.socket objects; module app → clients holds");
  expect(suspects).toHaveLength(1);
  expect(suspects[0]).toMatchObject({ type: "_socket.socket", stack: [] });
});

test("for sampled sockets the creating stack is also reported", () => {
  const evidence = evidenceOf("openSockets 4 + 1/s\nopenFiles 9 + 1/s\nanonRssBytes 40");
  const found = holder(handlesSite(TARGET, "_socket.socket"), ["module app", "clients"]);
  const madeAt: FrameJson[] = [
    { function: "__init__", file: "/usr/lib/python3.11/socket.py", line: 232, kind: "python" },
    { function: "connect", file: "/srv/app.py", line: 9, kind: "python" },
  ];
  const { verdict, suspects } = diagnose({ ...evidence, holders: [{ ...found, madeAt }] });
  expect(verdict.kind).toBe("handle-leak");
  expect(verdict.summary).toContain("mostly _socket.socket objects, created by connect (app.py:9)");
  expect(suspects).toHaveLength(1);
  expect(suspects[0]).toMatchObject({ type: "_socket.socket", stack: madeAt });
});

test("the creator of the sockets comes before sites that grow with them", () => {
  const evidence = evidenceOf(
    "openSockets 4 + 1/s\nopenFiles 9 + 1/s\nanonRssBytes 40 + 1/s\nsite buffer keeps 1/s",
  );
  const found = holder(handlesSite(TARGET, "_socket.socket"), ["module app", "clients"]);
  const madeAt: FrameJson[] = [
    { function: "connect", file: "/srv/app.py", line: 9, kind: "python" },
  ];
  const { suspects } = diagnose({ ...evidence, holders: [{ ...found, madeAt }] });
  expect(suspects).toMatchObject([
    { type: "_socket.socket", stack: madeAt, share: 1, advice: [{ id: "TM-A072" }] },
    { stack: [{ function: "buffer" }], rank: 2, advice: [] },
  ]);
  const { suspects: unknown } = diagnose({ ...evidence, holders: [found] });
  expect(unknown[0]?.stack[0]?.function).toBe("buffer");
});

test("descriptors without an object are reported by the stack that opens them", () => {
  const evidence = evidenceOf("openSockets 4\nopenFiles 9 + 1/s\nanonRssBytes 40");
  const madeAt: FrameJson[] = [{ function: "probe", file: "/srv/app.py", line: 9, kind: "python" }];
  const found = { ...holder(handlesSite(TARGET, ""), []), looked: 0, held: 0, holder: null };
  const { verdict, suspects } = diagnose({ ...evidence, holders: [{ ...found, madeAt }] });
  expect(verdict.kind).toBe("handle-leak");
  expect(verdict.summary).toContain("created by probe (app.py:9)");
  expect(suspects).toHaveLength(1);
  expect(suspects[0]).toMatchObject({ stack: madeAt });
  expect(suspects[0]?.type).toBeUndefined();
});

test("the holder of the sockets is not reported if memory leaks elsewhere", () => {
  const evidence = evidenceOf("anonRssBytes 40 + 1/s\nsite record keeps 1/s");
  const holders = [holder(handlesSite(TARGET, "_socket.socket"), ["module app", "clients"])];
  const { suspects } = diagnose({ ...evidence, holders });
  expect(suspects[0]?.holder).toBeUndefined();
});
