import { Writable } from "node:stream";
import { expect, it } from "vitest";
import { progressLine, withProgress } from "./progress.js";

/** A terminal, or a pipe, that keeps what it is told. */
function stream(isTTY: boolean): { stream: NodeJS.WriteStream; text: () => string } {
  let text = "";
  const sink = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  const columns = 60;
  const terminal = Object.assign(sink, { isTTY, columns, hasColors: () => false });
  return { stream: terminal as unknown as NodeJS.WriteStream, text: () => text };
}

/** Four steps of a second each by a clock of their own. */
async function fourSteps(options: Parameters<typeof withProgress>[2]): Promise<string> {
  let now = 5000;
  return withProgress(
    "app.html",
    "snapshots",
    { ...options, now: () => now },
    async (onProgress) => {
      for (let done = 1; done <= 4; done++) {
        now += 1000;
        await onProgress(done, 4);
      }
      return "made";
    },
  );
}

it("shows rate and estimate on a terminal, and clears its line", async () => {
  const { stream: terminal, text } = stream(true);
  expect(await fourSteps({ stream: terminal })).toBe("made");
  expect(text().split("\r\x1b[K")).toEqual([
    "",
    "tidemark: app.html: 1 of 4 snapshots, 1.0/s, about 3.0 s l…",
    "tidemark: app.html: 2 of 4 snapshots, 1.0/s, about 2.0 s l…",
    "tidemark: app.html: 3 of 4 snapshots, 1.0/s, about 1.0 s l…",
    "tidemark: app.html: 4 of 4 snapshots, 1.0/s, finishing",
    "",
  ]);
});

it("clears its line when the work fails", async () => {
  const { stream: terminal, text } = stream(true);
  let now = 0;
  const failing = withProgress(
    "x",
    "snapshots",
    { stream: terminal, now: () => now },
    async (onProgress) => {
      now = 1000;
      await onProgress(1, 2);
      throw new Error("no space left");
    },
  );
  await expect(failing).rejects.toThrow("no space left");
  expect(text()).toContain("1 of 2 snapshots");
  expect(text().endsWith("\r\x1b[K")).toBe(true);
});

it("writes nothing into a pipe, with --quiet, or for short work", async () => {
  const pipe = stream(false);
  await fourSteps({ stream: pipe.stream });
  const quiet = stream(true);
  await fourSteps({ stream: quiet.stream, quiet: true });
  const quick = stream(true);
  await withProgress("x", "snapshots", { stream: quick.stream, now: () => 0 }, (onProgress) =>
    onProgress(1, 1),
  );
  expect([pipe.text(), quiet.text(), quick.text()]).toEqual(["", "", ""]);
});

it("computes the rate from the first step on", async () => {
  const { stream: terminal, text } = stream(true);
  let now = 0;
  await withProgress("x", "MiB", { stream: terminal, now: () => now }, async (onProgress) => {
    now = 60_000;
    await onProgress(0, 10);
    now = 61_000;
    await onProgress(5, 10);
  });
  expect(text()).toContain("5 of 10 MiB, 5.0/s, about 1.0 s left");
});

it("shows no rate before it is known", () => {
  expect(progressLine("x", "snapshots", 0, 1400, 0)).toBe("tidemark: x: 0 of 1,400 snapshots");
  expect(progressLine("x", "snapshots", 700, 1400, 7000)).toBe(
    "tidemark: x: 700 of 1,400 snapshots, 100/s, about 7.0 s left",
  );
});
