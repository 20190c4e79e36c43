import { expect, test } from "vitest";
import { NEWEST_PYTHON_MINOR, OLDEST_PYTHON_MINOR } from "../../model/base/python_versions.js";
import { heapLayout } from "../heap/memory/layout.js";
import { LAYOUTS } from "../layouts/index.js";
import { OPCODES } from "../layouts/opcodes.js";
import { factsOf, minorOf, VERSION_FACTS } from "./version_facts.js";

const supported = Array.from(
  { length: NEWEST_PYTHON_MINOR - OLDEST_PYTHON_MINOR + 1 },
  (_, n) => OLDEST_PYTHON_MINOR + n,
);

test("every supported version has one row of facts, in order", () => {
  expect(VERSION_FACTS.map(({ minor }) => minor)).toEqual(supported);
});

test.each(supported)("3.%i has offsets, opcodes and a heap layout", (minor) => {
  const tables = LAYOUTS.filter(({ version }) => minorOf(version) === minor);
  const generators = "run the generators that CONTRIBUTING.md lists (A version of CPython)";
  expect(
    tables.some(({ debug }) => !debug),
    generators,
  ).toBe(true);
  expect(OPCODES[minor], generators).toBeDefined();
  expect(heapLayout(minor)?.minor).toBe(minor);
});

test("no table belongs to an unsupported version", () => {
  expect(new Set(LAYOUTS.map(({ version }) => factsOf(version).minor))).toEqual(new Set(supported));
  expect(Object.keys(OPCODES).map(Number)).toEqual(supported);
  expect(heapLayout(OLDEST_PYTHON_MINOR - 1)).toBeNull();
  expect(heapLayout(NEWEST_PYTHON_MINOR + 1)).toBeNull();
});

test("a version with a debugger's slot publishes its offsets", () => {
  for (const { version, published } of LAYOUTS) {
    expect(factsOf(version).debuggerSupport === null || published !== null, version).toBe(true);
  }
});
