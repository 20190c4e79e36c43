/** The remarks below the table of `tidemark watch --once`. */
import { expect, test } from "vitest";
import type { WatchRowJson } from "../../model/documents/watch_document.js";
import { remarksOnAll } from "./watch.js";

const row = (pid: number, reason: string, triggers: string[] = []) =>
  ({ service: "shop", pid, reason, remedy: "use sudo", triggers }) as unknown as WatchRowJson;

test("what applies to several programs is named once, with the programs", () => {
  const all = [row(1, "it belongs to root"), row(2, ""), row(3, "it belongs to root")];
  expect(remarksOnAll(all, false)).toEqual([
    "shop (1), shop (3): cannot be attached to: it belongs to root; use sudo",
  ]);
  const many = Array.from({ length: 12 }, (_, pid) => row(pid, "it is traced"));
  expect(remarksOnAll(many, false)).toEqual([
    expect.stringMatching(
      /^shop \(0\), .*shop \(7\), and 4 more: cannot be attached to: it is traced/,
    ),
  ]);
});

test("a service's name cannot begin a line of its own", () => {
  const [remark = ""] = remarksOnAll(
    [{ ...row(1, "it is traced"), service: "a\nroot (2)" }],
    false,
  );
  expect(remark).toMatch(/^a root \(2\) \(1\) cannot be attached to/);
});

test("--check adds what would be captured, and when", () => {
  const captured = [row(1, "", ["90 % of the limit is in use: ledger"])];
  expect(remarksOnAll(captured, false)).toEqual([]);
  expect(remarksOnAll(captured, true)).toEqual([
    "shop (1) would be captured if 90 % of the limit is in use: ledger",
  ]);
});
