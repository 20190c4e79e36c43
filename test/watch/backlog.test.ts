/** A server that is away: recordings wait on disk, lose profiles before series if the disk runs short, and arrive once. */
import { readFileSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { Backlog, type BacklogEvent } from "../../src/collect/kept/backlog.js";
import { KeptRecordings } from "../../src/collect/kept/kept_recordings.js";
import { freeAddress } from "../../src/model/base/free_port.fixture.js";
import type { ServiceJson } from "../../src/model/documents/fleet_document.js";
import type { SeriesAnswer } from "../../src/model/wire/services.js";
import type { Destination } from "../../src/recording/sender/post_connection.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { open, until } from "../run.js";
import { ask, post, type RunningServer, startServer } from "../server/running_server.js";
import { IDLE, stopped, withWatchTest } from "./watched.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const MIB = 2 ** 20;
const watched = withWatchTest();
let server: RunningServer | null = null;
afterEach(async () => {
  await server?.kill();
  server = null;
});

/** A day of one program: RSS every minute, and a profile every five minutes. */
function dayOf(pid: number, startedMs: number): Buffer {
  const minutes = Array.from({ length: 24 * 60 }, (_, minute) => minute);
  return streamBytes({
    ...{ service: "shop", pid, startedMs, endedAfterMs: 24 * HOUR },
    rss: minutes.map((minute) => [minute * MINUTE, (100 + (minute % 60)) * MIB]),
    profiles: minutes
      .filter((minute) => minute % 5 === 0)
      .map((minute) => [minute * MINUTE, `main;keep ${MIB + minute} variance=1`]),
  });
}

function keptIn(folder: string, startedMs: number): { kept: KeptRecordings; paths: string[] } {
  const kept = new KeptRecordings(folder, true);
  const paths = [1, 2, 3].map((pid) => {
    const path = kept.newPath("shop", pid, startedMs);
    writeFileSync(path, dayOf(pid, startedMs));
    utimesSync(path, startedMs / 1000 + pid, startedMs / 1000 + pid);
    kept.markUnsent(path, 0);
    kept.closed(path);
    return path;
  });
  return { kept, paths };
}

const countsIn = (path: string) => {
  const { snapshots, series } = open(path);
  return { profiles: snapshots.length, readings: series[0]?.timesMs.length };
};
const sizeOf = (path: string) => statSync(path).size;
const forever = { keepMs: Number.POSITIVE_INFINITY };

test("a disk that runs short costs profiles, the oldest recording's first, and series last", () => {
  const { kept, paths } = keptIn(join(watched().folder, "kept"), Date.now() - 25 * HOUR);
  const [first = "", second = "", third = ""] = paths;
  const whole = countsIn(first);
  expect(whole).toEqual({ profiles: 288, readings: 1440 });
  const size = sizeOf(first);
  expect(kept.tidy({ ...forever, mostBytes: 3 * size - 1000 }, Date.now())).toBe(0);
  expect([first, second, third].map(countsIn)).toEqual([
    { profiles: 25, readings: 1440 },
    ...[whole, whole],
  ]);
  kept.tidy({ ...forever, mostBytes: sizeOf(first) * 3 - 1000 }, Date.now());
  expect([first, second, third].map(countsIn)).toEqual([
    { profiles: 0, readings: 1440 },
    ...Array(2).fill({ profiles: 25, readings: 1440 }),
  ]);
  const least = sizeOf(first);
  kept.tidy({ ...forever, mostBytes: least * 3 + 1000 }, Date.now());
  expect([first, second, third].map(countsIn)).toEqual(
    Array(3).fill({ profiles: 0, readings: 1440 }),
  );
  // Nothing but the series is left: now the oldest recording goes.
  expect(kept.tidy({ ...forever, mostBytes: least * 3 - 1000 }, Date.now())).toBe(1);
  expect(kept.unsent()).toEqual([second, third]);
  kept.close();
});

test("what the server may have stays as it is, and a recording of which that is unknown is not thinned", () => {
  const { kept, paths } = keptIn(join(watched().folder, "kept"), Date.now() - 25 * HOUR);
  const [first = "", second = "", third = ""] = paths;
  const before = readFileSync(second);
  const mayHave = Math.floor(before.length / 2);
  kept.markUnsent(first);
  kept.markUnsent(second, mayHave);
  const sizes = [sizeOf(first), sizeOf(third)];
  kept.tidy({ ...forever, mostBytes: 3 * before.length - 1000 }, Date.now());
  expect([sizeOf(first), sizeOf(third)]).toEqual(sizes);
  const after = readFileSync(second);
  expect(after.length).toBeLessThan(before.length);
  expect(after.subarray(0, mayHave).equals(before.subarray(0, mayHave))).toBe(true);
  kept.close();
});

test("everything arrives once: whole, thinned, truncated, half sent, and sent already", async () => {
  const startedMs = Date.now() - 25 * HOUR;
  const { kept, paths } = keptIn(join(watched().folder, "kept"), startedMs);
  const [thinned = "", half = "", cut = ""] = paths;
  const whole = readFileSync(half);
  const events: BacklogEvent[] = [];
  const away = new Backlog({ url: "http://127.0.0.1:9", token: null }, kept, (event) =>
    events.push(event),
  );
  away.next(0);
  await vi.waitUntil(() => events.length > 0, { timeout: 60_000 });
  await away.close();
  expect(events).toMatchObject([{ kind: "backlog-waits", recordings: 3 }]);
  expect(kept.unsent()).toHaveLength(3);

  kept.markUnsent(thinned, 0);
  kept.markUnsent(half, whole.length);
  kept.markUnsent(cut);
  kept.tidy({ ...forever, mostBytes: whole.length * 3 - 1000 }, Date.now());
  truncateSync(cut, whole.length - 10);
  server = await startServer(join(watched().folder, "data"));
  // The server has a part of it, at a frame's end.
  const begin = streamBytes({ service: "shop", pid: 2, startedMs });
  let end = begin.length;
  while (!whole.subarray(0, end).equals(begin.subarray(0, end))) {
    end -= 1;
  }
  const sent = await post(server.url, whole.subarray(0, end));
  expect(sent).toMatchObject({ status: 200, answer: { nextOffset: end } });

  for (const [round, expected] of [3, 3].entries()) {
    const backlog = new Backlog({ url: server.url, token: null }, kept, (event) =>
      events.push(event),
    );
    for (const path of round === 0 ? [] : paths) {
      kept.markUnsent(path); // as after a collector that was killed
    }
    backlog.next(0);
    await vi.waitUntil(() => kept.unsent().length === 0, { timeout: 60_000 });
    await backlog.close();
    expect(events.at(-1)).toEqual({ kind: "backlog-sent", recordings: expected });
    const window = `from=${startedMs}&to=${startedMs + 24 * HOUR}`;
    const { url } = server;
    await until(async () => {
      const { body } = await ask(`${url}/api/v1/service?name=shop&${window}`);
      return (body as ServiceJson).instances?.length === 3;
    });
    const { body } = await ask(
      `${url}/api/v1/series?service=shop&name=rssBytes&steps=24&${window}`,
    );
    const [all] = (body as SeriesAnswer).groups;
    // Three programs of 100 to 159 MiB each, in every hour.
    expect(all?.values).toHaveLength(24);
    expect(all?.values.every((bytes) => Math.abs((bytes ?? 0) / MIB - 3 * 129.5) < 3)).toBe(true);
  }
  kept.close();
});

test("a wrong token or address leaves the recordings marked, with one line each", async () => {
  const { kept, paths } = keptIn(join(watched().folder, "kept"), Date.now() - 25 * HOUR);
  const [tokens, token] = [join(watched().folder, "tokens"), "aaaaaaaaaaaaaaaa"];
  writeFileSync(tokens, `ingest ${token}\n`);
  server = await startServer(join(watched().folder, "data"), { options: ["--token-file", tokens] });
  const { url } = server;
  const sent = async (to: Destination) => {
    const events: BacklogEvent[] = [];
    const backlog = new Backlog(to, kept, (event) => events.push(event));
    backlog.next(0);
    await vi.waitUntil(() => events.length > 0, { timeout: 60_000 });
    await backlog.close();
    return events;
  };
  for (const [to, why] of [
    [{ url, token: "wrong" }, /status 401 .*--token-file/],
    [{ url: `${url}/elsewhere`, token }, /status 404 .*check the address http.*elsewhere/],
  ] as const) {
    expect(await sent(to)).toEqual([
      { kind: "backlog-waits", recordings: 3, why: expect.stringMatching(why) },
    ]);
    expect(kept.unsent()).toEqual(paths);
  }
  expect(await sent({ url, token })).toEqual([{ kind: "backlog-sent", recordings: 3 }]);
  kept.close();
});

test("programs that ended while the server was away are on it after the collector was killed and started again", async () => {
  const data = join(watched().folder, "data");
  const listen = await freeAddress();
  const url = `http://${listen}`;
  const config = watched().policy();
  const first = watched().watch("--config", config, "--to", url);
  const program = watched().python(IDLE, "outside");
  await until(() => watched().recordingOf("outside", false) !== undefined);
  // A program that ends before its first reading is no instance.
  await until(() => (countsIn(watched().recordingOf("outside", false) ?? "").readings ?? 0) > 0);
  program.kill("SIGKILL");
  await until(
    () => open(watched().recordingOf("outside", false) ?? "").processes[0]?.endedMs != null,
  );
  first.child.kill("SIGKILL");
  await until(() => first.child.signalCode !== null);
  rmSync(join(watched().recordingsFolder, "watch.lock"));

  server = await startServer(data, { listen });
  const second = watched().watch("--config", config, "--to", url);
  await until(() => second.said().includes("sent the rest of 1 recording "));
  await until(async () => {
    const { body } = await ask(`${url}/api/v1/service?name=${watched().name}-outside`);
    return (body as ServiceJson).instances?.length === 1;
  });
  expect(await stopped(second.child)).toBe(0);
});
