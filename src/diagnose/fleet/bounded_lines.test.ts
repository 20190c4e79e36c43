import { expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { diagnose } from "../verdict/verdict.js";
import { isBounded, lineHolders } from "./bounded_lines.js";
import { processOf } from "./fleet_evidence.fixture.js";

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
  expect(isBounded(filling.line, of(filling, filling, leaking))).toBe(true);
  expect(isBounded(filling.line, of(filling, leaking))).toBe(false);
  expect(isBounded({ ...filling.line, function: "other" }, of(filling))).toBe(false);
  expect(isBounded(filling.line, [process])).toBe(false);
});
