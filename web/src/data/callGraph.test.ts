import { expect, test } from "vitest";
import { callersBelow } from "../../../src/model/call_tree.js";
import { serviceReport } from "../../../test/serviceReport.js";
import { calleesBelow, mainDomains, ownFigures, withDescendants } from "./callGraph.js";
import { framesMatching, frameWords } from "./frameNames.js";
import { EVERY_SITE, labelChoices, rowsPassing } from "./siteFilter.js";
import { groupSites, medianAge, medianLifetime } from "./siteGroups.js";

const { tables, looks, summary } = serviceReport();
const look = looks[looks.length - 1];
const rows = rowsPassing(tables, look.sites, EVERY_SITE);
const MIB = 1024 ** 2;

function weights(): Float64Array {
  const byStack = new Float64Array(tables.stacks.length);
  for (const row of rows) byStack[look.sites.stack[row]] += look.sites.liveBytes[row];
  return byStack;
}

test("both directions hold the same whole, and the leaf's callers hold the leaf's bytes", () => {
  for (const graph of [calleesBelow(tables), callersBelow(tables, [weights()])]) {
    const own = ownFigures(graph, look.sites, rows, "liveBytes");
    expect(withDescendants(graph, own)[0]).toBeCloseTo(512 * MIB);
    for (let node = 1; node < graph.length; node++) expect(graph.parent[node]).toBeLessThan(node);
  }
  const callers = callersBelow(tables, [weights()]);
  const total = withDescendants(callers, ownFigures(callers, look.sites, rows, "liveBytes"));
  const path: string[] = [];
  let node = Array.from({ length: callers.length }, (_, i) => i).find(
    (i) =>
      callers.parent[i] === 0 &&
      i > 0 &&
      frameWords(tables, callers.frame[i]).function === "remember",
  );
  while (node !== undefined) {
    path.push(frameWords(tables, callers.frame[node]).function);
    expect(total[node]).toBeCloseTo(256 * MIB);
    const at: number = node;
    node = Array.from({ length: callers.length }, (_, i) => i).find(
      (i) => i > 0 && callers.parent[i] === at,
    );
  }
  expect(path).toEqual(["remember", "handle", "run", "main", "<module>"]);
});

test("a node takes the allocator of most of its bytes", () => {
  const graph = calleesBelow(tables);
  const domains = mainDomains(graph, look.sites, rows, "liveBytes");
  rows.forEach((row) => {
    expect(domains[graph.nodeOfStack[look.sites.stack[row]]]).toBe(look.sites.domain[row]);
  });
  expect(domains[0]).toBe(0);
});

test("filters take what they name", () => {
  const chat = labelChoices(tables).find((choice) => choice.name === "endpoint=/chat");
  expect(rowsPassing(tables, look.sites, { ...EVERY_SITE, label: chat?.label ?? -1 })).toHaveLength(
    3,
  );
  expect(rowsPassing(tables, look.sites, { ...EVERY_SITE, thread: 1 })).toHaveLength(2);
  expect(rowsPassing(tables, look.sites, { ...EVERY_SITE, domain: 2 })).toHaveLength(1);
  expect(rowsPassing(tables, look.sites, { ...EVERY_SITE, process: 1 })).toHaveLength(0);
});

test("groups carry the figures, the age and the lifetime of their sites", () => {
  const groups = groupSites(tables, look, rows);
  const named = (name: string) => {
    const group = groups.find((one) => frameWords(tables, one.frame).function === name);
    if (!group) throw new Error(`no group ${name}`);
    return group;
  };
  expect(named("remember").liveBytes).toBeCloseTo(256 * MIB);
  const { startMs } = summary.window;
  expect(medianAge(named("remember"), look, startMs)).toBeCloseTo(300_000, -3);
  expect(medianAge(named("read_weights"), look, startMs)).toBeGreaterThan(500_000);
  expect(medianLifetime(named("matmul"))).toBeLessThan(8);
  expect(medianLifetime(named("remember"))).toBeGreaterThan(1000);
});

test("search takes parts, file:line and patterns, and refuses a broken pattern", () => {
  const count = (text: string) => framesMatching(tables, text)?.reduce((a, b) => a + b, 0);
  expect(count("REMEMBER")).toBe(1);
  expect(count("history.py:41")).toBe(1);
  expect(count("/^(encode|embed)$/")).toBe(2);
  expect(count("nowhere")).toBe(0);
  expect(framesMatching(tables, "/(/")).toBeNull();
});
