/** Compares native stacks with the truth: programs whose threads are paused in known chains of calls. */

import { unlinkSync } from "node:fs";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { openProcessMemory, ProcessHolder } from "../../linux/index.js";
import { itemAt } from "../../model/base/columns.js";
import { present } from "../../model/base/present.js";
import {
  CHAINS,
  copyHeld,
  OPTIMISED,
  ownFrames,
  Programs,
  settled,
  stacksOf,
} from "./programs.fixture.js";
import { Unwinder } from "./unwinder.js";

const programs = new Programs();
afterEach(() => programs.stop());
afterAll(() => programs.remove());

const NO_DESCRIPTIONS = [
  ...["-O1", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"],
  ...["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
];

describe("threads in known chains", () => {
  test.each([
    ["without frame pointers", OPTIMISED],
    ["linked to fixed addresses", [...OPTIMISED, "-no-pie"]],
    ["linked statically, without a table of its descriptions", [...OPTIMISED, "-static"]],
    ["not optimized", ["-O0"]],
  ])("%s", async (name, options) => {
    const stacks = await settled(
      await programs.run(programs.compile("chains", name.replaceAll(" ", "-"), options)),
    );
    for (const [thread, chain] of Object.entries(CHAINS)) {
      const stack = present(stacks.get(thread));
      expect([thread, ownFrames(stack), stack.cut]).toEqual([thread, chain, null]);
    }
    const deep = present(stacks.get("deep"));
    expect(deep.cut).toMatch(/copied/);
    expect(deep.frames.length).toBeGreaterThan(1000);
  });

  test("each frame has its own part of the stack, up to its caller's", async () => {
    const stacks = await settled(
      await programs.run(programs.compile("chains", "parts", OPTIMISED)),
    );
    for (const name of ["nested", "frames", "callback", "handler"]) {
      const { frames } = present(stacks.get(name));
      expect(frames.slice(1).map(({ low }) => low)).toEqual(
        frames.slice(0, -1).map(({ high }) => high),
      );
    }
    const large = stacks
      .get("frames")
      ?.frames.find((frame) => frame.function === "with_large_frame");
    expect((large?.high ?? 0) - (large?.low ?? 0)).toBeGreaterThan(100_000);
  });

  test("a stripped program whose file is deleted: the same frames, named by offset", async () => {
    const whole = programs.compile("chains", "whole", OPTIMISED);
    const stripped = programs.compile("chains", "stripped", [...OPTIMISED, "-s"]);
    const expected = await settled(await programs.run(whole));
    const pid = await programs.run(stripped);
    unlinkSync(stripped);
    for (const name of ["nested", "frames", "callback", "handler"]) {
      const truth = present(expected.get(name));
      await expect
        .poll(async () => (await stacksOf(pid)).get(name)?.frames.length)
        .toBe(truth.frames.length);
      const { frames, cut } = present((await stacksOf(pid)).get(name));
      expect(cut).toBeNull();
      const own = frames.filter(({ file }) => file === stripped);
      expect(own.length).toBe(ownFrames(truth).length);
      for (const frame of own) {
        expect(frame.function).toMatch(/^stripped\+0x[0-9a-f]+$/);
      }
    }
  });

  test("code without descriptions is unwound by its frame pointers", async () => {
    const pid = await programs.run(programs.compile("chains", "undescribed", NO_DESCRIPTIONS));
    const chain = CHAINS.nested as string[];
    await expect
      .poll(async () => ownFrames(present((await stacksOf(pid)).get("nested"))))
      .toEqual(chain);
  });
});

/** Possible callers of a function of the running program. */
const CALLERS: Readonly<Record<string, readonly string[]>> = {
  leaf: ["middle", "by_library"],
  by_library: ["middle"],
  middle: ["outer"],
  outer: ["main"],
};

test("a program paused anywhere: every stack is complete, and every call in it exists", async () => {
  const pid = await programs.run(programs.compile("running", "running", OPTIMISED));
  const memory = openProcessMemory(pid);
  const unwinder = new Unwinder(memory);
  const holder = new ProcessHolder(pid);
  const seen = new Set<number>();
  while (seen.size < 100) {
    const { frames, cut } = unwinder.unwind(itemAt(await copyHeld(memory, holder), 0));
    expect(cut).toBeNull();
    const names = frames.map((frame) => frame.function);
    const own = names.filter((name) => name === "main" || name in CALLERS);
    expect(own.at(-1)).toBe("main");
    for (const [index, name] of own.slice(0, -1).entries()) {
      expect(CALLERS[name]).toContain(own[index + 1]);
    }
    expect(names.at(-1)).toBe("_start");
    seen.add(frames[0]?.address ?? 0);
    await new Promise((resolve) => setTimeout(resolve, 1)); // it runs on for a moment
  }
  holder.close();
  unwinder.close();
  memory.close();
});
