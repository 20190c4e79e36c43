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
const cpu = ["tidemark", "memray", "scalene", "tracemalloc, 1 frame"].map((tool) =>
  Number.parseFloat(cells("docs/benchmarks.md", tool)[1] ?? "").toFixed(2),
);

test("the table of README.md", () => {
  // Columns 5 to 7 are py-spy, Pyroscope and Datadog.
  const row = (/** @type {string} */ name) => cells("README.md", name).slice(1, 5);
  expect(row("CPU time, relative to the plain program")).toEqual(cpu);
  expect(row("leaks in our bench: right line listed first")).toEqual(found);
  expect(row("growth reported without a leak")).toEqual(growth);
  const datadog = Number.parseFloat(cells("docs/benchmarks.md", "ddtrace, memory")[1] ?? "");
  expect(cells("README.md", "CPU time, relative to the plain program")[7]).toBe(datadog.toFixed(2));
});

test.each(["tidemark run", ...peers].map((tool, at) => ({ tool, at })))(
  "the row of $tool in docs/which-tool.md",
  ({ tool, at }) => {
    const row = cells("docs/which-tool.md", tool);
    expect(row.slice(1)).toEqual([cpu[at], found[at], growth[at]]);
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
