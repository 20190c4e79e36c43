/** Arrays, frames and tensors: their data is attributed to them, and to their holders. */

import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import {
  countObjects,
  findRootPaths,
  largestHolders,
  nodeAt,
  type ObjectGraph,
  type TakenGraph,
  takeGraph,
} from "../../src/cpython/heap/index.js";
import { isMadeByGraph } from "../../src/cpython/heap/objects/tensor.js";
import { structureOwners, UNSEARCHED } from "../../src/holders/native_structures.js";
import { type Memory, openProcessMemory } from "../../src/linux/index.js";
import { float64At } from "../../src/model/base/columns.js";
import { present } from "../../src/model/base/present.js";
import { environment } from "../environment.js";
import { start, type Waiting } from "../python_program.js";
import { repository } from "../run.js";

const MIB = 2 ** 20;
let waiting: Waiting | null = null;
let memory: Memory | null = null;
afterEach(async () => {
  memory?.close();
  await waiting?.stop();
});

/** Library threads would take time on a busy machine, and add nothing here. */
const QUIET = { OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1" };

async function snapshot(python: string, program: string): Promise<TakenGraph & { bytesOf: Bytes }> {
  waiting = await start([python, join(repository, "test/heap/programs", program)], QUIET);
  memory = openProcessMemory(waiting.pid);
  const { census } = countObjects(memory);
  const rows = census.typeNames.map(
    (name, row) => [name, (census.bytes[row] ?? 0) + (census.bufferBytes[row] ?? 0)] as const,
  );
  const bytes = new Map(rows);
  const taken = await takeGraph(memory, { maxPauseMs: 60_000 }, 0);
  return { ...taken, bytesOf: (type) => bytes.get(type) ?? 0 };
}

type Bytes = (type: string) => number;

function said(): Record<string, number> {
  return present(waiting).said as Record<string, number>;
}

function nodeOf({ index }: ObjectGraph, name: string): number {
  const node = index.at(Number(waiting?.said[name]));
  expect(node, name).toBeGreaterThan(0);
  return node;
}

function retained(objects: ObjectGraph, name: string): number {
  return float64At(objects.tree.retained, nodeOf(objects, name));
}

describe.runIf(environment.packagesPython !== null)("NumPy and pandas", () => {
  test("data counts once, for the array that owns it", async () => {
    const { objects, bytesOf } = await snapshot(present(environment.packagesPython), "arrays.py");
    expect(retained(objects, "base")).toBeGreaterThanOrEqual(8 * MIB);
    expect(retained(objects, "base")).toBeLessThan(8 * MIB + 4096);
    expect(findRootPaths(objects, [nodeOf(objects, "base")])[0]?.path.slice(0, 2)).toEqual([
      "module __main__",
      "VIEWS",
    ]);
    expect(retained(objects, "floats")).toBeGreaterThanOrEqual(4 * MIB);
    expect(retained(objects, "mapped")).toBeLessThan(MIB); // its data belongs to the file
    const { objectBytes, frameBytes } = said();
    const part = retained(objects, "objects") / present(objectBytes);
    expect(part).toBeGreaterThan(0.99);
    expect(part).toBeLessThan(1.01);
    // pandas counts each string as getsizeof does, and so do we; we also count pandas' own structures.
    const frame = retained(objects, "frame") / present(frameBytes);
    expect(frame).toBeGreaterThan(0.99);
    expect(frame).toBeLessThan(1.03);
    expect(bytesOf("numpy.ndarray")).toBeGreaterThan(12 * MIB + 3 * 300_000 * 8);
    expect(bytesOf("numpy.ndarray")).toBeLessThan(14 * MIB + 4 * 300_000 * 8);
  });
});

describe.runIf(environment.packagesPython !== null)("pydantic", () => {
  test("the contents of a Rust hash map are attributed to the object that owns the map", async () => {
    const { objects } = await snapshot(present(environment.packagesPython), "rust_map.py");
    const texts = (said().texts as unknown as string[]).map(Number);
    const kept = nodeOf(objects, "kept");
    const owned = structureOwners(objects, texts).filter((owner) => owner === kept).length;
    expect(owned / present(said().count)).toBeGreaterThan(0.95);
    // Without time for more, only blocks that a word of the object itself points to are found. The texts are deeper: unknown.
    const start = float64At(objects.graph.address, kept);
    const words = Array.from({ length: 32 }, (_, n) => objects.copy.word(start + 8 * n));
    const near = present(words.find((word) => structureOwners(objects, [word], -1)[0] === kept));
    const [, ...deeper] = structureOwners(objects, [near, ...texts], -1);
    expect(new Set(deeper)).toEqual(new Set([UNSEARCHED]));
    // A search that finds none takes them for memory of C code.
    expect(new Set(structureOwners(objects, texts, -1))).toEqual(new Set([0]));
  });
});

describe.runIf(environment.torchPython !== null)("torch", () => {
  test("a storage counts once, for the holder of all tensors that share it", async () => {
    const { objects, bytesOf } = await snapshot(present(environment.torchPython), "tensors.py");
    const { storageBytes } = said();
    const counted = bytesOf("torch.Tensor") + bytesOf("torch.nn.parameter.Parameter");
    expect(counted / present(storageBytes)).toBeGreaterThan(0.999);
    expect(counted / present(storageBytes)).toBeLessThan(1.01);
    expect(retained(objects, "weight")).toBeGreaterThanOrEqual(4 * MIB);
    expect(retained(objects, "kept")).toBeGreaterThanOrEqual(12 * MIB);
    expect(retained(objects, "view")).toBeLessThan(4096);
    const shared = largestHolders(objects, 50).find(({ type }) => type === "torch storage");
    expect(shared).toMatchObject({
      path: ["module __main__", expect.stringMatching(/^(FIRST|SECOND)$/), ".view", "storage"],
      retainedBytes: 4 * MIB,
    });
    expect(retained(objects, "array")).toBeGreaterThanOrEqual(3 * MIB);
    const array = nodeOf(objects, "array");
    const data = objects.copy.word(float64At(objects.graph.address, array) + 16); // PyArrayObject.data
    expect(nodeAt(objects, data)).toBe(array);
  });

  test("tensors created by a graph are distinguished from others", async () => {
    const { objects } = await snapshot(present(environment.torchPython), "tensors.py");
    const made = (name: string) => isMadeByGraph(objects.copy, Number(said()[name]));
    expect(made("loss")).toBe(true);
    expect(["weight", "view", "detached", "array", "kept"].filter(made)).toEqual([]);
  });
});
