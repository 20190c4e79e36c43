/** `tidemark serve --store clickhouse://...` with a real server of ClickHouse, which is killed while streams arrive. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { itemAt } from "../../src/model/base/columns.js";
import type { ProfileAnswer } from "../../src/model/wire/services.js";
import { FILE_HEAD_BYTES, FRAME_HEAD_BYTES } from "../../src/recording/frames/frames.js";
import { streamName } from "../../src/recording/sender/stream_name.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { ClickhouseServer } from "../../src/store/clickhouse/server.fixture.js";
import { environment } from "../environment.js";
import { execute, removeScratch, scratch, tidemark } from "../run.js";
import { ask, post, startServer } from "./running_server.js";

afterAll(removeScratch);

const START = Date.now() - 600_000;
const STREAMS = 3;
const PROFILES = 12;
const root = environment.clickhouse ?? null;

const streams = Array.from({ length: STREAMS }, (_, at) =>
  streamBytes({
    ...{ service: "shop", version: String(40 + at), pid: 100 + at, startedMs: START },
    rss: Array.from({ length: 60 }, (_poll, n) => [n * 1000, (n + 1) * 1e6] as const),
    profiles: Array.from({ length: PROFILES }, (_look, n) => {
      const lines = Array.from(
        { length: n + 1 },
        (_line, f) => `main;f${f} ${1e7 * (f + 1)} allocated=${1e7 * (f + 1)} variance=1`,
      );
      return [n * 5000 + 1, lines.join("\n")] as const;
    }),
    endedAfterMs: 60_000,
  }),
);

/** Whole frames from an offset. */
function piece(bytes: Buffer, offset: number, frames: number): Buffer {
  let end = offset === 0 ? FILE_HEAD_BYTES : offset;
  for (let count = 0; count < frames && end < bytes.length; count++) {
    end += FRAME_HEAD_BYTES + bytes.readUInt32LE(end);
  }
  return bytes.subarray(offset, end);
}

test.skipIf(root === null)(
  "acknowledged frames are in the answers, once, although ClickHouse was killed and started again",
  async () => {
    const clickhouse = await ClickhouseServer.start(root ?? "");
    const files = scratch();
    const options = ["--store", clickhouse.store("fleet"), "--files", files];
    try {
      let server = await startServer(null, { options });
      const send = async (at: number) => {
        const bytes = itemAt(streams, at);
        for (let offset = 0; offset < bytes.length; ) {
          const part = piece(bytes, offset, 2);
          const { status, answer } = await post(server.url, part, {
            ...{ offset, stream: streamName(bytes) },
          });
          expect([200, 503]).toContain(status);
          offset = answer.nextOffset ?? offset;
          await sleep(20);
        }
      };
      const sending = Promise.all(streams.map((_, at) => send(at)));
      await sleep(300);
      await clickhouse.kill();
      await sleep(300);
      await clickhouse.begin();
      await sending;
      await server.stop();
      server = await startServer(null, { options });
      const window = `from=${START}&to=${START + 60_000}`;
      const { body } = await ask(`${server.url}/api/v1/profile?service=shop&${window}`);
      const total = ((PROFILES * (PROFILES + 1)) / 2) * 1e7 * STREAMS;
      expect((body as ProfileAnswer).allocatedBytes).toBeCloseTo(total, -1);
      await clickhouse.kill();
      for (const path of ["services", "profile?service=shop"]) {
        const { status, headers, body: said } = await ask(`${server.url}/api/v1/${path}`);
        expect([path, status, headers.get("retry-after"), said]).toMatchObject([
          ...[path, 503, "5"],
          { error: expect.stringMatching(/no server listens there/), code: "unavailable" },
        ]);
      }
      await clickhouse.begin();
      const services = await ask(`${server.url}/api/v1/services`);
      expect(JSON.stringify(services.body)).toContain(`"endedInstances":${STREAMS}`);
      // A second server with the same files.
      const second = await execute([tidemark, "serve", "--listen", "127.0.0.1:0", ...options]);
      expect(second.stderr).toMatch(/is in use by another server/);
      expect(server.said()).not.toContain("ret@");
      expect(await server.stop()).toBe(0);
      const backup = await execute([tidemark, "serve", ...options, "--backup", `${files}/backup`]);
      expect(backup.stderr).toMatch(/needs a store in a folder, not in ClickHouse/);
    } finally {
      await clickhouse.stop();
    }
  },
);

test("options that do not belong together end in one line", async () => {
  const store = `duckdb:${scratch()}`;
  const { status, stderr } = await execute([
    tidemark,
    "serve",
    "--store",
    store,
    "--files",
    "/tmp/any",
  ]);
  expect([status, stderr.trim().split("\n").length]).toEqual([2, 1]);
  expect(stderr).toMatch(/--files has no effect with a store in a folder/);
});
