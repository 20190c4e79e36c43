import { expect, it } from "vitest";
import type { Bytes, Pid } from "../../model/base/units.js";
import type { TreePoll } from "../process/tree_poll.js";
import { DeviceUse } from "./device_use.js";

/** Two recordings, one of the processes 10 and 11, one of 20. */
function recorded(uses: (ReadonlyMap<Pid, Bytes> | null)[], hasDriver = true) {
  let nowMs = 0;
  let asked = 0;
  const use = new DeviceUse({
    clock: () => nowMs,
    hasDriver: () => hasDriver,
    read: async () => uses[asked++] ?? null,
  });
  const readers = [
    {
      living: new Map([
        [10, 0],
        [11, 1],
      ]),
      add: use.reader(),
    },
    { living: new Map([[20, 0]]), add: use.reader() },
  ];
  return {
    asked: () => asked,
    /** What each recording measures, as [series, bytes]. */
    async poll(atMs: number) {
      nowMs = atMs;
      const measured = readers.map(({ living, add }) => {
        const rows: [number, number][] = [];
        add({
          tree: { livingSeries: living },
          measure: ({ series }: { series: number }, metric: string, value: number) => {
            expect(metric).toBe("deviceBytes");
            rows.push([series, value]);
          },
        } as unknown as TreePoll);
        return rows;
      });
      await Promise.resolve();
      return measured;
    },
  };
}

it("adds each reading once to each recording, and 0 B when a process has left its device", async () => {
  const one = recorded([
    new Map([[11, 700]]),
    new Map([
      [20, 5],
      [99, 8],
    ]),
    new Map(),
  ]);
  expect(await one.poll(0)).toEqual([[], []]);
  expect(await one.poll(1_000)).toEqual([[[1, 700]], []]);
  expect(await one.poll(2_000)).toEqual([[], []]);
  await one.poll(31_000);
  expect(await one.poll(32_000)).toEqual([[[1, 0]], [[0, 5]]]);
  await one.poll(62_000);
  expect(await one.poll(63_000)).toEqual([[], [[0, 0]]]);
  expect(one.asked()).toBe(3);
});

it("asks rarely while no recorded process uses a device, or the driver does not answer", async () => {
  const none = recorded([new Map([[99, 8]]), new Map(), new Map()]);
  for (let ms = 0; ms < 3_600_000; ms += 5_000) {
    await none.poll(ms);
  }
  expect(none.asked()).toBeLessThan(12);
  const mute = recorded([]);
  for (let ms = 0; ms < 3_600_000; ms += 5_000) {
    await mute.poll(ms);
  }
  expect(mute.asked()).toBeLessThan(12);
  const without = recorded([], false);
  await without.poll(0);
  await without.poll(700_000);
  expect(without.asked()).toBe(0);
});
