/** Backup of a server that is receiving data, and its restore: the copy is complete, and its answers are correct. */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { itemAt } from "../../src/model/base/columns.js";
import { FILE_HEAD_BYTES, FRAME_HEAD_BYTES } from "../../src/recording/frames/frames.js";
import { streamName } from "../../src/recording/sender/stream_name.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { validate } from "../recorded_app.js";
import { execute, removeScratch, scratch, tidemark } from "../run.js";
import { pprofOf, pushMessage } from "./profiles.js";
import { ask, post, type RunningServer, startServer } from "./running_server.js";

afterAll(removeScratch);

const SECOND = 1000;
const POLLS = 200;
const START = Date.now() - POLLS * SECOND;
const streams = [1, 2, 3, 4].map((pid) =>
  streamBytes({
    service: "shop",
    pid,
    startedMs: START,
    rss: Array.from({ length: POLLS }, (_, n) => [n * SECOND, (n + pid) * 1e6] as const),
    profiles: Array.from(
      { length: 40 },
      (_, n) => [n * 5 * SECOND + 1, `main;f${n} ${1e7 + n} allocated=${1e7} variance=1`] as const,
    ),
    endedAfterMs: POLLS * SECOND,
  }),
);
const window = `from=${START}&to=${START + POLLS * SECOND}`;

let folder: string;
let servers: RunningServer[];
beforeEach(() => {
  folder = scratch();
  servers = [];
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.kill()));
});

const started = async (...given: Parameters<typeof startServer>) => {
  const server = await startServer(...given);
  servers.push(server);
  return server;
};
const serve = (...words: string[]) => execute([tidemark, "serve", ...words], { cwd: folder });
const store = (name: string) => ["--store", `duckdb:${join(folder, name)}`];

/**
 * Sends all streams concurrently, a frame at a time, until `isOver`: the second half slowly, so that it does not end before
 * that. @returns what is acknowledged, by stream.
 */
function sending(url: string, isOver: () => boolean) {
  const acknowledged = streams.map(() => 0);
  const send = async (at: number) => {
    const bytes = itemAt(streams, at);
    const pause = (end: number) => sleep(end > bytes.length / 2 ? 200 : 4);
    for (let end = FILE_HEAD_BYTES; end < bytes.length && !isOver(); await pause(end)) {
      end += FRAME_HEAD_BYTES + bytes.readUInt32LE(end);
      const offset = acknowledged[at] ?? 0;
      const part = bytes.subarray(offset, end);
      const { status } = await post(url, part, { offset, stream: streamName(bytes) });
      expect(status).toBe(200);
      acknowledged[at] = end;
    }
  };
  return { acknowledged, done: Promise.all(streams.map((_, at) => send(at))) };
}

const answers = async ({ url }: RunningServer) => [
  (await ask(`${url}/api/v1/profile?service=shop&${window}`)).body,
  (await ask(`${url}/api/v1/series?service=shop&${window}&steps=50`)).body,
  (await ask(`${url}/api/v1/series?service=shop&${window}&steps=50&name=liveBytes&by=instance`))
    .body,
];

describe("while data is sent", () => {
  test("a backup is complete, and its restore gives correct answers", async () => {
    const server = await started(join(folder, "data"));
    let isOver = false;
    const sent = sending(server.url, () => isOver);
    await sleep(1500);
    for (const name of ["first", "second"]) {
      const before = [...sent.acknowledged];
      const { status, stdout } = await serve(
        ...store("data"),
        "--backup",
        join(folder, name),
        "--json",
      );
      expect(status).toBe(0);
      expect(validate(stdout, "backup")).toMatchObject({ folder: join(folder, name) });
      const after = [...sent.acknowledged];
      streams.forEach((bytes, at) => {
        const path = join(folder, name, "data/streams", `${streamName(bytes)}.tidemark`);
        const kept = readFileSync(path);
        expect(kept.length).toBeGreaterThanOrEqual(before[at] ?? 0);
        expect(bytes.subarray(0, kept.length).equals(kept)).toBe(true);
        // Frames arrived during the copy.
        expect(after[at]).toBeGreaterThan(before[at] ?? 0);
      });
    }
    isOver = true;
    await sent.done;
    await server.stop();
    const { status, stderr } = await serve(...store("again"), "--restore", join(folder, "second"));
    expect([status, stderr]).toEqual([0, expect.stringContaining("restored")]);
    const restored = await started(join(folder, "again"));
    const kept = join(folder, "second/data/streams");
    const files = readdirSync(kept).map((name) => join(kept, name));
    const fresh = await started(join(folder, "fresh"), { options: ["--load", ...files] });
    const [a, b] = [await answers(restored), await answers(fresh)];
    expect(a).toEqual(b);
    expect((a[0] as { allocatedBytes: number }).allocatedBytes).toBeGreaterThan(0);
    // A sender continues where the backup ends, even if the sender was further ahead.
    const bytes = itemAt(streams, 0);
    const stream = streamName(bytes);
    const { answer } = await post(restored.url, bytes.subarray(0, 0), { offset: 1e9, stream });
    const offset = answer.nextOffset ?? 0;
    expect((await post(restored.url, bytes.subarray(offset), { offset, stream })).status).toBe(200);
  });

  test("profiles of others are in it, and are not stored twice after the restore", async () => {
    const server = await started(join(folder, "data"));
    const body = pushMessage(
      { __name__: "memory", service_name: "pushed" },
      pprofOf({ inuse_space: 4096 }),
      "0b0f4a6c-1d5e-4a63-9a53-1c9c6f7a2a11",
    );
    const push = ({ url }: RunningServer) =>
      ask(`${url}/push.v1.PusherService/Push`, {
        method: "POST",
        headers: { "content-type": "application/proto" },
        body: new Uint8Array(body),
      });
    expect((await push(server)).status).toBe(200);
    expect((await serve(...store("data"), "--backup", "copy")).status).toBe(0);
    expect((await serve(...store("again"), "--restore", "copy")).status).toBe(0);
    const restored = await started(join(folder, "again"));
    expect((await push(restored)).status).toBe(200);
    const names = readdirSync(join(folder, "again/streams"));
    expect(names).toHaveLength(1);
    const name = names[0] ?? "";
    expect(
      readFileSync(join(folder, "again/streams", name)).equals(
        readFileSync(join(folder, "copy/data/streams", name)),
      ),
    ).toBe(true);
  });
});

describe("a stopped server", () => {
  const filled = async () => {
    const server = await started(join(folder, "data"));
    await Promise.all(streams.slice(0, 2).map((bytes) => post(server.url, bytes)));
    return server;
  };

  test("is backed up, too; also one that was killed", async () => {
    const server = await filled();
    await server.kill();
    expect((await serve(...store("data"), "--backup", "copy")).status).toBe(0);
    expect((await serve(...store("again"), "--restore", "copy")).status).toBe(0);
    const restored = await started(join(folder, "again"));
    const { body } = await ask(`${restored.url}/api/v1/service?name=shop&${window}`);
    expect((body as { instances: unknown[] }).instances).toHaveLength(2);
  });

  test("what does not fit is refused in one line, and changes nothing", async () => {
    const server = await filled();
    await server.stop();
    const refused = async (expected: RegExp, ...words: string[]) => {
      const { status, stderr } = await serve(...words);
      expect([status, stderr]).toEqual([2, expect.stringMatching(expected)]);
      expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    };
    expect((await serve(...store("data"), "--backup", "copy")).status).toBe(0);
    await refused(/is not empty/, ...store("data"), "--backup", "copy");
    await refused(/is not empty/, ...store("data"), "--restore", "copy");
    await refused(/no such store: .*misspelled/, ...store("misspelled"), "--backup", "other");
    expect([existsSync(join(folder, "misspelled")), existsSync(join(folder, "other"))]).toEqual([
      false,
      false,
    ]);
    await refused(/into the folder of the store/, ...store("data"), "--backup", "data/copy");
    await refused(/cannot be combined/, ...store("x"), "--restore", "copy", "--backup", "copy");
    await refused(/no .*list of the backup/s, ...store("x"), "--restore", "data");
    const broken = itemAt(readdirSync(join(folder, "copy/data/streams")), 0);
    appendFileSync(join(folder, "copy/data/streams", broken), "x");
    await refused(/differs from what was backed up/, ...store("x"), "--restore", "copy");
    expect(readdirSync(join(folder, "x"))).toEqual([]);
    const list = join(folder, "copy/backup.json");
    const manifest = JSON.parse(readFileSync(list, "utf8")) as { files: { name: string }[] };
    itemAt(manifest.files, 0).name = "../../outside";
    writeFileSync(list, JSON.stringify(manifest));
    await refused(/not a list of a backup/, ...store("x"), "--restore", "copy");
    expect(existsSync(join(folder, "outside"))).toBe(false);
    rmSync(list);
    await refused(/incomplete/, ...store("x"), "--restore", "copy");
    mkdirSync(join(folder, "x/restoring"), { recursive: true });
    await refused(/did not finish/, ...store("x"));
  });
});
