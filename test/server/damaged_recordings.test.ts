/** Recordings that are damaged: `serve --load` and `open` name the file, show what is whole, and go on. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import type { ServicesJson } from "../../src/model/documents/fleet_document.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { removeScratch, scratch } from "../run.js";
import { ask, type RunningServer, startServer, startServing } from "./running_server.js";

const MINUTE = 60_000;
const START = Date.now() - 20 * MINUTE;
let server: RunningServer | null = null;
afterEach(async () => {
  await server?.kill();
  server = null;
});
afterAll(removeScratch);

function recordingOf(service: string, pid = 1): Buffer {
  return streamBytes({
    ...{ service, pid, startedMs: START },
    rss: Array.from({ length: 20 }, (_, n) => [n * MINUTE, (1 + n) * 2 ** 20] as const),
    profiles: Array.from(
      { length: 4 },
      (_, n) => [n * 5 * MINUTE, `main;handle ${(1 + n) * 1e6} variance=1`] as const,
    ),
    endedAfterMs: 20 * MINUTE,
  });
}

/** Three quarters of its bytes are as they were. */
const DAMAGES: Readonly<Record<string, (whole: Buffer) => Buffer>> = {
  cut: (whole) => whole.subarray(0, Math.floor(0.75 * whole.length)),
  overwritten: (whole) => whole.fill(0x5a, Math.floor(0.75 * whole.length)),
  flipped: (whole) => {
    const at = Math.floor(0.75 * whole.length);
    whole.writeUInt8(whole.readUInt8(at) ^ 0xff, at);
    return whole;
  },
  followed: (whole) => Buffer.concat([whole, Buffer.from("bytes of something else")]),
};

function writeAll(folder: string): string[] {
  return Object.entries(DAMAGES).map(([name, damaged], at) => {
    const file = `${name}.tidemark`;
    writeFileSync(join(folder, file), damaged(recordingOf(name, 2 + at)));
    return file;
  });
}

const services = async (url: string) => {
  const { body } = await ask(`${url}/api/v1/services`);
  return (body as ServicesJson).services.map(({ service }) => service);
};
const unread = (file: string) =>
  new RegExp(`of \\S*${file} could not be read: it is damaged from byte \\d+ on`);

test("serve --load names each, and loads what is whole of it and of the others", async () => {
  const folder = scratch();
  const files = writeAll(folder);
  writeFileSync(join(folder, "whole.tidemark"), recordingOf("whole"));
  server = await startServer(join(folder, "data"), {
    cwd: folder,
    options: [...files, "whole.tidemark"].flatMap((file) => ["--load", file]),
  });
  for (const file of files) {
    expect(server.said()).toMatch(unread(file));
  }
  expect(server.said()).not.toContain("of whole.tidemark could not be read");
  expect(await services(server.url)).toEqual([...Object.keys(DAMAGES), "whole"].sort());
});

test.each(Object.keys(DAMAGES))("open shows what is whole of one that is %s", async (name) => {
  const folder = scratch();
  writeAll(folder);
  const file = `${name}.tidemark`;
  server = await startServing(["open", file], { cwd: folder, env: { TMPDIR: folder } });
  await expect
    .poll(server.said)
    .toMatch(new RegExp(`${file} is damaged: .*: only the part before it is shown`));
  expect(await services(new URL(server.url).origin)).toEqual([name]);
});
