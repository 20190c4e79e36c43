/**
 * Real tensors of a real program. There is no device, so their data is in host memory, and the program itself
 * reports the blocks that a device's allocator would report.
 */

import { expect, test } from "vitest";
import { environment } from "../../../../test/environment.js";
import { startPython } from "../../../../test/python_program.js";
import { openProcessMemory } from "../../../linux/index.js";
import { present } from "../../../model/base/present.js";
import { countObjects, findDeviceTensors, takeGraph } from "../index.js";

const PROGRAM = `
import torch
class Cache: pass
big = torch.zeros(1000, 3000, dtype=torch.float16)
views = [big[i:, ::2] for i in range(5)]
model = torch.nn.Linear(2000, 3000)
cache = Cache()
cache.k = torch.zeros(2, 3, 4, 5, 6, 7000, dtype=torch.bfloat16)
flags = {"mask": torch.zeros(4_000_000, dtype=torch.bool)}
freed = torch.zeros(3_000_000)
def work():
    local = torch.arange(2_000_000)
    tensors = {"big": big, "weight": model.weight, "k": cache.k, "mask": flags["mask"], "local": local}
    blocks = {}
    for name, tensor in tensors.items():
        storage = tensor.untyped_storage()
        # As an allocator with blocks of 512 bytes rounds it.
        blocks[name] = [storage.data_ptr(), -(-storage.nbytes() // 512) * 512, storage.nbytes()]
    blocks["freed"] = [freed.untyped_storage().data_ptr() + 64, 12_000_000, 0]
    say(blocks)
work()
`;

test.skipIf(environment.torchPython === null)(
  "tensors by the blocks they lie in: shape, type, views and holder",
  async () => {
    const program = await startPython({ path: present(environment.torchPython) }, PROGRAM);
    const memory = openProcessMemory(program.pid);
    try {
      const blocks = program.said as Record<string, [number, number, number]>;
      const { census } = countObjects(memory);
      const expected = census.objects.reduce((sum, count) => sum + count, 0);
      const { objects } = await takeGraph(memory, { maxPauseMs: 60_000 }, expected);
      const asked = Object.values(blocks).map(([address, bytes]) => ({ address, bytes }));
      const found = findDeviceTensors(objects, asked);
      const of = (name: string) =>
        found.find(({ address }) => address === blocks[name]?.[0]) ?? null;
      for (const name of ["big", "weight", "k", "mask", "local"]) {
        expect(of(name)?.bytes, name).toBe(blocks[name]?.[2]);
      }
      expect(of("big")).toMatchObject({ shape: [1000, 3000], dtype: "float16", views: 6 });
      expect(of("big")?.path).toEqual(["module __main__", "big"]);
      expect(of("weight")).toMatchObject({
        shape: [3000, 2000],
        dtype: "float32",
        views: 1,
        type: "torch.nn.parameter.Parameter",
      });
      expect(of("weight")?.path.join(" ")).toMatch(/^module __main__ model .*weight/);
      expect(of("k")).toMatchObject({ shape: [2, 3, 4, 5, 6, 7000], dtype: "bfloat16" });
      expect(of("k")?.path).toEqual(["module __main__", "cache", ".k"]);
      expect(of("mask")).toMatchObject({ shape: [4_000_000], dtype: "bool" });
      expect(of("local")).toMatchObject({ shape: [2_000_000], dtype: "int64" });
      expect(found, "a block that no tensor begins is nobody's").toHaveLength(5);
    } finally {
      memory.close();
      await program.stop();
    }
  },
);
