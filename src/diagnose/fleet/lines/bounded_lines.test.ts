import { expect, test } from "vitest";
import { evidenceOf } from "../../evidence/evidence.fixture.js";
import { diagnose } from "../../verdict/verdict.js";
import { HOUR, processOf } from "../fleet_evidence.fixture.js";
import { boundednessOf, lineHolders, mayFill } from "./bounded_lines.js";

const holdersWith = (bound: number) =>
  lineHolders(
    diagnose(
      evidenceOf(`anonRssBytes 17 + 1.2/s
    site page keeps 1.2/s
    holder page held=40 retained=54 entries=3818 bound=${bound} at=36s path=Catalog`),
    ),
  );
const process = processOf({ instance: 0, version: "1.0", fromDaysAgo: 1, mib: () => 0 });

test("the diagnosis of a process tells the fleet which lines a container with a bound holds", () => {
  const [filling] = holdersWith(200_000);
  expect(filling).toMatchObject({ line: { function: "page" }, bound: 200_000 });
  const [leaking] = holdersWith(0);
  expect(leaking).toMatchObject({ line: { function: "page" } });
  expect(leaking).not.toHaveProperty("bound");
});

test("a line is bounded if most processes that know its holder found a bound", () => {
  const [filling, leaking] = [...holdersWith(200_000), ...holdersWith(0)];
  if (filling === undefined || leaking === undefined) {
    throw new Error("a holder is missing");
  }
  const of = (...holders: (typeof filling)[]) =>
    holders.map((holder) => ({ ...process, holders: [holder] }));
  expect(boundednessOf(filling.line, of(filling, filling, leaking))).toBe("bounded");
  expect(boundednessOf(filling.line, of(filling, leaking))).toBe("open");
  expect(boundednessOf({ ...filling.line, function: "other" }, of(filling))).toBe("unknown");
  expect(boundednessOf(filling.line, [process])).toBe("unknown");
});

test("a line that is named after a cache may fill for a day and a half; a known bound lasts", () => {
  const line = (name: string, file = "/srv/shop/state.py") =>
    ({ kind: "python", function: name, file, line: 3 }) as const;
  const isFilling = (...named: Parameters<typeof line>) =>
    boundednessOf(line(...named), [process]) === "fills";
  expect(isFilling("_row_cache")).toBe(true);
  expect(isFilling("RecentOrders.add")).toBe(true);
  expect(isFilling("add", "/srv/shop/ttl.py")).toBe(true);
  // "ring" and "cache" inside other words, and names of folders, are ignored.
  expect(isFilling("render_string", "/srv/cache/monitoring.py")).toBe(false);
  expect(mayFill(line("cached"), [process], 35 * HOUR)).toBe(true);
  expect(mayFill(line("cached"), [process], 37 * HOUR)).toBe(false);
  const [bounded] = holdersWith(200_000);
  const known = { ...process, holders: bounded === undefined ? [] : [bounded] };
  expect(mayFill(bounded?.line ?? line("page"), [known], 100 * HOUR)).toBe(true);
});

test("an attribute of a library's own cache is no name of the program's", () => {
  const line = { kind: "python", function: "page", file: "/srv/shop/pages.py", line: 3 } as const;
  const held = (path: string[]) =>
    boundednessOf(line, [{ ...process, holders: [{ line, path, type: "dict" }] }]);
  expect(held(["module pages", "page", "field of functools._lru_cache_wrapper"])).toBe("open");
  expect(held(["module pages", "PAGE_CACHE"])).toBe("fills");
});
