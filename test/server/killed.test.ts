/** SIGKILL of the server while streams arrive: nothing that it acknowledged is lost or duplicated. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, inject, test } from "vitest";
import { itemAt } from "../../src/model/base/columns.js";
import { freeAddress } from "../../src/model/base/free_port.fixture.js";
import type { ProfileAnswer, SeriesAnswer } from "../../src/model/wire/services.js";
import { FILE_HEAD_BYTES, FRAME_HEAD_BYTES } from "../../src/recording/frames/frames.js";
import { streamName } from "../../src/recording/sender/stream_name.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { removeScratch, scratch } from "../run.js";
import { ask, post, type RunningServer, startServer } from "./running_server.js";

afterAll(removeScratch);

const STREAMS = 6;
const POLLS = 120;
const SECOND = 1000;
const START = Date.now() - POLLS * SECOND;

/** A profile's allocated bytes only grow: each profile has one more function. */
function allocatedBy(snapshot: number): string {
  const lines = Array.from({ length: snapshot + 1 }, (_, n) => {
    const bytes = 1e7 * (n + 1);
    return `main;f${n} ${bytes} allocated=${bytes} variance=1`;
  });
  return lines.join("\n");
}

const streams = Array.from({ length: STREAMS }, (_, at) =>
  streamBytes({
    service: "shop",
    pid: 100 + at,
    startedMs: START,
    rss: Array.from({ length: POLLS }, (_poll, n) => [n * SECOND, (n + 1) * 1e6] as const),
    profiles: Array.from(
      { length: 20 },
      (_look, n) => [n * 6 * SECOND + 1, allocatedBy(n)] as const,
    ),
    endedAfterMs: POLLS * SECOND,
  }),
);

/** Whole frames from an offset, a few at a time. */
function piece(bytes: Buffer, offset: number, frames: number): Buffer {
  let end = offset === 0 ? FILE_HEAD_BYTES : offset;
  for (let count = 0; count < frames && end < bytes.length; count++) {
    end += FRAME_HEAD_BYTES + bytes.readUInt32LE(end);
  }
  return bytes.subarray(offset, end);
}

test("no acknowledged frame is lost or duplicated", async () => {
  const folder = scratch();
  const acknowledged = streams.map(() => 0);
  const listen = await freeAddress();
  let server: RunningServer = await startServer(folder, { listen });
  let isOver = false;
  const send = async (at: number): Promise<void> => {
    const bytes = itemAt(streams, at);
    while (!isOver && (acknowledged[at] ?? 0) < bytes.length) {
      const offset = acknowledged[at] ?? 0;
      try {
        const part = piece(bytes, offset, 1 + (offset % 3));
        const { status, answer } = await post(server.url, part, {
          offset,
          stream: streamName(bytes),
        });
        expect([200, 503]).toContain(status);
        acknowledged[at] = answer.nextOffset ?? offset;
        // Now and then repeats what was already acknowledged.
        if (offset % 7 === 0) {
          expect((await post(server.url, part, { offset, stream: streamName(bytes) })).status).toBe(
            200,
          );
        }
      } catch (error) {
        if (!(error instanceof TypeError)) {
          throw error;
        }
        await sleep(50); // fetch: the server is not there
      }
      await sleep(15);
    }
  };
  const sending = Promise.all(streams.map((_, at) => send(at)));
  for (let kill = 0; kill < inject("counts").serverKills; kill++) {
    await sleep(300 + ((kill * 397) % 900));
    await server.kill();
    const before = acknowledged.slice();
    server = await startServer(folder, { listen });
    streams.forEach((bytes, at) => {
      const stored = readFileSyncOrEmpty(join(folder, "streams", `${streamName(bytes)}.tidemark`));
      expect(stored.length).toBeGreaterThanOrEqual(before[at] ?? 0);
      expect(bytes.subarray(0, stored.length).equals(stored)).toBe(true);
    });
  }
  await sending;
  isOver = true;
  expect(acknowledged).toEqual(streams.map(({ length }) => length));
  await server.stop();
  server = await startServer(folder);
  const window = `from=${START}&to=${START + POLLS * SECOND}`;
  const profile = await ask(`${server.url}/api/v1/profile?service=shop&${window}`);
  // 20 functions, each allocated once in each stream.
  const total = ((20 * 21) / 2) * 1e7 * STREAMS;
  expect((profile.body as ProfileAnswer).allocatedBytes).toBeCloseTo(total, -1);
  const series = await ask(`${server.url}/api/v1/series?service=shop&${window}&steps=${POLLS}`);
  const { values } = itemAt((series.body as SeriesAnswer).groups, 0);
  expect(values).toEqual(Array.from({ length: POLLS }, (_, n) => (n + 1) * 1e6 * STREAMS));
  const { body } = await ask(`${server.url}/api/v1/service?name=shop`);
  expect((body as { instances: unknown[] }).instances).toHaveLength(STREAMS);
  await server.stop();
});

function readFileSyncOrEmpty(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
}
