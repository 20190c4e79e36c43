import { expect, test } from "vitest";
import { float64At, itemAt } from "../../../../src/model/base/columns.js";
import type { GpuReplay } from "../../../../src/model/gpu/gpu_replay.js";
import { changeOf, differenceOf } from "./gpuDifference.js";
import { flameOf } from "./gpuFlame.js";

/** A file whose stacks are `names` of one frame each, with one allocation of each size. */
function sideOf(names: readonly string[], sizes: readonly number[]) {
  const strings = ["", "/srv/train.py", ...names];
  const tables = {
    strings,
    frames: {
      length: names.length,
      function: Uint32Array.from(names, (_, row) => row + 2),
      file: new Uint32Array(names.length).fill(1),
      line: Uint32Array.from(names, () => 7),
    },
    stacks: {
      length: names.length + 1,
      parent: new Uint32Array(names.length + 1),
      frame: Uint32Array.from([0, ...names.keys()]),
    },
    streams: new Float64Array(1),
  };
  const allocations = {
    size: Float64Array.from(sizes),
    stack: Uint32Array.from(sizes, (_, row) => row + 1),
  };
  return {
    tables,
    replay: { allocations } as unknown as GpuReplay,
    held: Uint32Array.from(sizes.keys()),
    category: new Uint8Array(sizes.length),
  };
}

test("two files are joined by frame names, however each numbers its frames", () => {
  const before = sideOf(["stays", "grows", "goes"], [10, 20, 30]);
  const after = sideOf(["appears", "grows", "stays"], [5, 60, 10]);
  const sites = differenceOf(before, after);
  const changes = sites.map((site) => [site.frame.name, changeOf(site), site.after - site.before]);
  expect(changes.sort()).toEqual([
    ["appears", "appeared", 5],
    ["goes", "went", -30],
    ["grows", "grew", 40],
    ["stays", "same", 0],
  ]);
});

test("the flame graph of a difference is as wide as the larger of both, so that freed memory is visible", () => {
  const before = sideOf(["stays", "goes"], [10, 30]);
  const after = sideOf(["stays"], [10]);
  const { frames, layout, bytes, before: earlier } = flameOf(after, before);
  const byName = new Map(
    [...layout.node].map((node, at) => [
      itemAt(frames, node).name,
      [
        earlier?.[node],
        float64At(bytes, node),
        float64At(layout.end, at) - float64At(layout.start, at),
      ],
    ]),
  );
  expect(byName).toEqual(
    new Map([
      ["all", [40, 10, 40]],
      ["goes", [30, 0, 30]],
      ["stays", [10, 10, 10]],
    ]),
  );
});
