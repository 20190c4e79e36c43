/** Checks that the figures in README.md, docs/which-tool.md and docs/heap.md match docs/leakbench.md and docs/benchmarks.md. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../setup.mjs";

const text = (/** @type {string} */ page) => readFileSync(join(root, page), "utf8");
/** The cells of the first row that begins with the given cells. @param {string} page @param {string[]} begin */
function cells(page, ...begin) {
  const start = `| ${begin.join(" | ")} |`;
  const row =
    text(page)
      .split("\n")
      .find((line) => line.startsWith(start)) ?? `no row ${start}`;
  return row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim().replace(/ \(.*\)$/, ""));
}

const leakbench = "docs/leakbench.md";
const peers = ["memray", "scalene", "tracemalloc"];
const run = cells(leakbench, "run", "own");
const [, , , , , lookAlikes = "", falseAlarms, culprits] = run;
const found = [culprits, ...peers.map((peer) => cells(leakbench, peer)[1])];
const growth = [
  `${falseAlarms} of ${lookAlikes.split(" of ")[1]}`,
  ...peers.map((peer) => cells(leakbench, peer)[3]),
];
/** Every row of the overhead table for a tool, in any length of run: its CPU ratio. @param {string} tool */
function ratios(tool) {
  const lines =
    text("docs/benchmarks.md").split("## Overhead\n")[1]?.split("\n## ")[0]?.split("\n") ?? [];
  const rows = lines
    .filter((line) => line.startsWith("| "))
    .map((line) => line.split("|").map((cell) => cell.trim()));
  const column = rows[0]?.indexOf("CPU") ?? -1;
  return rows
    .filter(([, name = ""]) => name === tool || new RegExp(`^${tool}, \\d+ times$`).test(name))
    .map((row) => Number.parseFloat(row[column] ?? ""));
}
const cpu = ["memray", "scalene", "tracemalloc, 1 frame"].map((tool) =>
  ratios(tool)[0]?.toFixed(2),
);

/** Tidemark's quoted figure spans what was measured: every length of run, rounded. @param {string} quoted */
function expectSpan(quoted = "") {
  const measured = ratios("tidemark");
  expect(measured.length).toBeGreaterThan(0);
  const [low = Number.NaN, high = low] = quoted.split(" to ").map(Number);
  for (const ratio of measured) {
    expect(Math.round(ratio * 100) / 100).toBeGreaterThanOrEqual(low);
    expect(Math.round(ratio * 100) / 100).toBeLessThanOrEqual(high);
  }
}

test("the table of README.md", () => {
  // Columns 5 to 7 are py-spy, Pyroscope and Datadog.
  const row = (/** @type {string} */ name) => cells("README.md", name).slice(1, 5);
  const [own, ...others] = row("CPU time, relative to the plain program");
  expectSpan(own);
  expect(others).toEqual(cpu);
  expect(row("leaks in our bench: right line listed first")).toEqual(found);
  expect(row("growth reported without a leak")).toEqual(growth);
  const datadog = cells("README.md", "CPU time, relative to the plain program")[7];
  expect(datadog).toBe(ratios("ddtrace, memory")[0]?.toFixed(2));
});

test("the row of tidemark run in docs/which-tool.md", () => {
  const [, own, ...others] = cells("docs/which-tool.md", "tidemark run");
  expectSpan(own);
  expect(others).toEqual([found[0], growth[0]]);
});

test.each(peers.map((tool, at) => ({ tool, at })))(
  "the row of $tool in docs/which-tool.md",
  ({ tool, at }) => {
    const row = cells("docs/which-tool.md", tool);
    expect(row.slice(1)).toEqual([cpu[at], found[at + 1], growth[at + 1]]);
  },
);

test.each([
  { method: "stop", of: /^\| 1 GiB \| stop, [\d,]+ ms \|/m },
  { method: "fork", of: /^\| 1 GiB \| fork, .*\|/m },
])("the pause of $method in docs/heap.md", ({ method, of }) => {
  const measured = text("docs/benchmarks.md").match(of)?.[0] ?? "";
  const row =
    (measured &&
      text("docs/benchmarks.md")
        .split("\n")
        .find((line) => line.startsWith(measured))) ||
    "";
  const [, , , pause, , copied] = row.split("|").map((cell) => cell.trim());
  const quoted = text("docs/heap.md")
    .split("\n")
    .find((line) => line.startsWith(`| ${method}`))
    ?.split("|")
    .map((cell) => cell.trim());
  expect(quoted?.slice(2, 4)).toEqual([pause, copied]);
});
