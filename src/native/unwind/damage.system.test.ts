/**
 * Damaged unwinding information, and registers that point anywhere, must always lead to an end with a stated
 * reason.
 */

import { afterAll, afterEach, expect, test } from "vitest";
import { type Mapping, type Memory, openProcessMemory } from "../../linux/index.js";
import { float64At, itemAt } from "../../model/base/columns.js";
import { present } from "../../model/base/present.js";
import { copyOnce, OPTIMISED, Programs, settled } from "./programs.fixture.js";
import { Unwinder } from "./unwinder.js";

const programs = new Programs();
afterEach(() => programs.stop());
afterAll(() => programs.remove());

/** Memory whose unwinding information is damaged; nothing is read from files. */
class Damaged implements Memory {
  readonly pid: number | null;
  readonly name: string;
  /** Changed words by address. */
  readonly bytes = new Map<number, number>();
  reads = 0;

  readonly #original: Memory;

  constructor(original: Memory) {
    this.#original = original;

    this.pid = original.pid;
    this.name = original.name;
  }

  get mappings(): readonly Mapping[] {
    return this.#original.mappings;
  }

  refresh(): boolean {
    return this.#original.refresh();
  }

  readInto(address: number, target: Uint8Array): number {
    this.reads += 1;
    const length = this.#original.readInto(address, target);
    for (const [at, byte] of this.bytes) {
      if (at >= address && at < address + length) {
        target[at - address] = byte;
      }
    }
    return length;
  }

  resident(start: number, end: number) {
    return this.#original.resident(start, end);
  }

  openFile(): null {
    return null;
  }

  close(): void {}
}

/** A deterministic generator (Marsaglia's xorshift), so the damage is the same every time. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

test("damaged unwinding information ends a stack with a message, however it is damaged", async () => {
  const pid = await programs.run(programs.compile("chains", "damaged", OPTIMISED));
  await settled(pid);
  const memory = openProcessMemory(pid);
  const threads = (await copyOnce(memory, pid)).slice(1, 9);
  const next = numbers(2_463_534_242);
  const constant = memory.mappings.filter(
    ({ readable, writable, executable, path }) =>
      readable && !writable && !executable && /damaged|libc/.test(path),
  );
  const whole = new Unwinder(new Damaged(memory));
  const truth = threads.map((thread) => whole.unwind(thread));
  expect(truth.map(({ cut }) => cut)).toEqual(truth.map(() => null));
  let cuts = 0;
  for (let round = 0; round < 150; round++) {
    const damaged = new Damaged(memory);
    for (const { start, end, path } of constant) {
      // These stacks need only a small part of libc's unwinding information, so far more bytes must be damaged.
      const hits = path.includes("libc") ? 2000 : 100;
      for (let hit = 0; hit < hits; hit++) {
        damaged.bytes.set(start + next(end - start), next(4) === 0 ? 0xff : next(256));
      }
    }
    const unwinder = new Unwinder(damaged);
    for (const thread of threads) {
      const { frames, cut } = unwinder.unwind(thread);
      expect(frames.length).toBeGreaterThan(0);
      cuts += cut === null ? 0 : 1;
    }
    expect(damaged.reads).toBeLessThan(20_000);
  }
  expect(cuts).toBeGreaterThan(50);
  memory.close();
});

test("arbitrary registers end in a message", async () => {
  const pid = await programs.run(programs.compile("chains", "anywhere", OPTIMISED));
  await settled(pid);
  const memory = openProcessMemory(pid);
  const threads = await copyOnce(memory, pid);
  const next = numbers(88_675_123);
  const unwinder = new Unwinder(memory);
  const places = [0, 1, -8, Number.NaN, 2 ** 47, 2 ** 53, 2 ** 64];
  for (let round = 0; round < 1000; round++) {
    const thread = itemAt(threads, next(threads.length));
    const values = Float64Array.from(thread.values);
    const other = present(threads[next(threads.length)]?.values);
    for (const register of [6, 7, 16]) {
      const kind = next(4);
      const mapping = itemAt(memory.mappings, next(memory.mappings.length));
      values[register] =
        kind === 0
          ? itemAt(places, next(places.length))
          : kind === 1
            ? mapping.start + next(mapping.end - mapping.start)
            : kind === 2
              ? float64At(other, register)
              : float64At(values, register) + next(4096) - 2048;
    }
    const { frames, cut } = unwinder.unwind({ ...thread, values });
    expect(frames.length + (cut === null ? 0 : 1)).toBeGreaterThan(0);
  }
  expect(unwinder.unwind({ ...itemAt(threads, 0), stacks: [] }).cut).toMatch(/outside its memory/);
  unwinder.close();
  memory.close();
});
