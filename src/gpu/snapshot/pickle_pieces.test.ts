/** A pickle is the same in whatever pieces it arrives. */
import { expect, test } from "vitest";
import { pickle } from "../../../test/gpu/pickle_writer.mjs";
import { snapshotOf } from "../../../test/gpu/snapshot_file.mjs";
import { randomFrom, randomWorkload, stackOf } from "../../../test/gpu/workload.mjs";
import type { GpuSnapshot } from "../../model/gpu/gpu_snapshot.js";
import { PickleMachine } from "../pickle/pickle_machine.js";
import { finishSnapshot } from "./finish_snapshot.js";
import { SnapshotShapes } from "./snapshot_shapes.js";

function read(bytes: Uint8Array, sizeOfNext: () => number): GpuSnapshot {
  const shapes = new SnapshotShapes();
  const machine = new PickleMachine("snapshot.pickle", shapes.strings, shapes);
  for (let at = 0; at < bytes.length; ) {
    const size = sizeOfNext();
    // Its bytes change afterwards, as those of a buffer that is used again.
    const piece = Buffer.from(bytes.subarray(at, at + size));
    machine.push(piece);
    piece.fill(0xff);
    at += size;
  }
  return finishSnapshot(machine, shapes);
}

test.each(["legacy", "plain", "pooled"] as const)("a %s snapshot in pieces", (schema) => {
  const { allocator } = randomWorkload(8, { events: 700 });
  const frames = stackOf(
    ...Array.from(
      { length: 40 },
      (_, depth) => `f${depth} /srv/${"long".repeat(300)}.py:${depth + 1}`,
    ),
  );
  for (let round = 0; round < 5; round++) {
    allocator.allocate(512, { frames });
  }
  const bytes = pickle(snapshotOf([allocator], schema));
  const whole = read(bytes, () => bytes.length);
  expect(whole.events.length).toBe(allocator.trace.length);
  for (const size of [1, 7, 299, 300, 301, 1500, 20_000]) {
    expect(read(bytes, () => size)).toEqual(whole);
  }
  const random = randomFrom(4);
  expect(read(bytes, () => 1 + Math.floor(random() ** 3 * 2000))).toEqual(whole);
});

test("integers of up to eight bytes are the nearest doubles", () => {
  const random = randomFrom(9);
  const short = (text: string) => [0x8c, text.length, ...Buffer.from(text)];
  for (let round = 0; round < 300; round++) {
    const digits = Array.from({ length: round % 9 }, () => Math.floor(random() * 256));
    const expected = digits.reduceRight((sum, digit) => (sum << 8n) | BigInt(digit), 0n);
    const bytes = Uint8Array.from([
      ...[0x80, 4, 0x7d, 0x28, ...short("segments"), 0x5d, ...short("allocator_settings")],
      ...[0x7d, 0x28, ...short("n"), 0x8a, digits.length, ...digits, 0x75, 0x75, 0x2e],
    ]);
    const { settings } = read(bytes, () => bytes.length);
    expect(settings).toEqual({ n: Number(BigInt.asIntN(8 * digits.length, expected)) });
  }
});
