/** Captures on their way to a server: complete and in pieces, through a server that is away and a collector that is killed. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Artifacts } from "../../src/collect/kept/artifacts.js";
import { SENT_MARK, type UploadEvent, Uploads } from "../../src/collect/kept/uploads.js";
import { freePort } from "../../src/model/base/free_port.fixture.js";
import type { ArtifactJson, ArtifactsJson } from "../../src/model/documents/artifact_document.js";
import { MOST_ABOUT_BYTES } from "../../src/model/wire/artifacts.js";
import { aboutArtifact } from "../../src/server/artifacts/about_artifact.js";
import { until } from "../run.js";
import { startServer } from "../server/running_server.js";
import { ArtifactServer } from "./artifact_server.js";
import { LEAK, stopped, withWatchTest } from "./watched.js";

const watched = withWatchTest();
let server: ArtifactServer;
beforeEach(() => {
  server = new ArtifactServer();
});
afterEach(() => server.close());

const LEDGER = "{when: {rss: 5MiB}, do: [ledger, stacks]}";
const isSent = (path: string) => existsSync(join(path, SENT_MARK));

/** Each file on the server is the one on disk. */
function expectSame(path: string): void {
  const about = JSON.parse(readFileSync(join(path, "about.json"), "utf8")) as ArtifactJson;
  const stored = server.complete().find((one) => one.about?.timeMs === about.timeMs);
  expect(stored?.about).toEqual(about);
  for (const { name } of about.files) {
    expect(stored?.files.get(name)?.equals(readFileSync(join(path, name)))).toBe(true);
  }
}

test("a capture of 'watch' arrives, though the server was away and the collector was killed halfway", async () => {
  const { name } = watched();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  watched().python(LEAK, "captured");
  const words = [
    ...["--to", url, "--config"],
    watched().policy("{warm_up: 1h}", [
      `{match: {service: "${name}-captured"}, watch: outside, triggers: [${LEDGER}]}`,
    ]),
  ];
  const first = watched().watch(...words);
  await until(() => first.said().includes("the server does not answer"));
  const [path = ""] = watched().artifacts();
  expect(isSent(path)).toBe(false);
  const again = new ArtifactServer();
  server = again;
  again.taken = 40; // of each piece: thousands of requests
  await again.listen(port);
  await until(() => again.received > 0);
  first.child.kill("SIGKILL");
  await until(() => first.child.signalCode !== null);
  expect(again.complete()).toEqual([]);
  again.taken = Number.POSITIVE_INFINITY;
  const second = watched().watch(...words);
  await until(() => second.said().includes(`sent ${path} to the server`));
  expectSame(path);
  expect(isSent(path)).toBe(true);
  // Without the mark it is offered again, and nothing is stored twice.
  rmSync(join(path, SENT_MARK));
  const { received } = again;
  await until(() => isSent(path));
  expect(again.received).toBe(received);
  expect(await stopped(second.child)).toBe(0);
});

test("a capture of 'watch' is listed by a real server, and its files are the same", async () => {
  const { name, folder } = watched();
  const { url, kill } = await startServer(join(folder, "store"));
  try {
    watched().python(LEAK, "captured");
    const collector = watched().watch(
      ...["--to", url, "--config"],
      watched().policy("{warm_up: 1h}", [
        `{match: {service: "${name}-captured"}, watch: outside, triggers: [${LEDGER}]}`,
      ]),
    );
    await until(() => collector.said().includes("to the server"));
    const [path = ""] = watched().artifacts();
    const listed = await fetch(`${url}/api/v1/artifacts?service=${name}-captured`);
    const { artifacts } = (await listed.json()) as ArtifactsJson;
    const about = JSON.parse(readFileSync(join(path, "about.json"), "utf8")) as ArtifactJson;
    expect(artifacts).toHaveLength(1);
    for (const { name: file } of about.files) {
      const stored = await fetch(`${url}/api/v1/artifacts/${artifacts[0]?.id}/${file}`);
      expect(Buffer.from(await stored.arrayBuffer()).equals(readFileSync(join(path, file)))).toBe(
        true,
      );
    }
    expect(await stopped(collector.child)).toBe(0);
  } finally {
    await kill();
  }
});

let made = 0;

/** An artifact with one file of this size; each is later than the one before. */
function artifact(folder: string, bytes: number, service = "shop"): string {
  const artifacts = new Artifacts(folder);
  const about: ArtifactJson = {
    schema: "tidemark.artifact/1",
    ...{ service, version: "1", env: "", pid: 7, reason: "a test", lastMoment: false },
    ...{ host: "a", command: ["python"], timeMs: Date.UTC(2026, 10, 27) + made++, problems: [] },
    files: [{ name: "heap-7.json", capture: "snapshot", pid: 7 }],
  };
  const path = artifacts.begin({ ...about, files: [] });
  writeFileSync(join(path, "heap-7.json"), Buffer.alloc(bytes, "x"));
  artifacts.written(path, about);
  return path;
}

async function uploading(folder: string) {
  const events: UploadEvent[] = [];
  const url = await server.listen();
  const uploads = new Uploads({ url, token: "secret" }, new Artifacts(folder), (event) => {
    events.push(event);
  });
  let clock = 0;
  const next = async (most = 2 ** 30) => {
    clock += 1e9;
    const { length } = events;
    uploads.next(most, clock);
    await until(() => events.length > length);
    return events.at(-1);
  };
  return { uploads, next };
}

test("a description with long texts is shortened to what a server takes", () => {
  const path = artifact(watched().folder, 1);
  const artifacts = new Artifacts(watched().folder);
  const long = "\u0001€".repeat(100_000);
  const about = JSON.parse(readFileSync(join(path, "about.json"), "utf8")) as ArtifactJson;
  const command = [
    "python",
    "-c",
    long,
    ...Array<string>(50_000).fill("--word"),
    ...Array<string>(99).fill(long),
  ];
  artifacts.written(path, {
    ...about,
    command,
    reason: long,
    problems: [...Array<string>(5_000).fill(long)],
  });
  const text = readFileSync(join(path, "about.json"), "utf8");
  expect(Buffer.byteLength(text)).toBeLessThan(MOST_ABOUT_BYTES);
  const taken = aboutArtifact(text) as ArtifactJson;
  expect(taken).toEqual(JSON.parse(text));
  expect(taken.command.slice(0, 4)).toEqual(["python", "-c", `${long.slice(0, 4_095)}…`, "--word"]);
  expect([taken.command.at(-1), taken.problems.at(-1)]).toEqual(["…", "…"]);
});

test("a large file in pieces, with the token; a second one follows", async () => {
  const { folder } = watched();
  const large = artifact(folder, 9_000_001);
  const empty = artifact(folder, 0, "empty");
  const { uploads, next } = await uploading(folder);
  expect(await next()).toMatchObject({ kind: "uploaded" });
  expect(await next()).toMatchObject({ kind: "uploaded" });
  expect([...server.tokens]).toEqual(["Bearer secret"]);
  expect(server.received).toBe(9_000_001);
  expectSame(large);
  expect([large, empty].every(isSent)).toBe(true);
  await uploads.close();
});

test.each([
  ["too large for the server", { status: 413, error: "artifact-bytes is 1 GiB" }, /artifact-bytes/],
  ["of another form", { status: 400, error: "files: too many" }, /too many/],
])("%s: refused once, not sent again", async (_, refusal, why) => {
  const path = artifact(watched().folder, 100);
  server.refusal = refusal;
  const { uploads, next } = await uploading(watched().folder);
  expect(await next()).toMatchObject({ kind: "not-uploaded", why: expect.stringMatching(why) });
  expect(readFileSync(join(path, SENT_MARK), "utf8")).toMatch(/^not sent: /);
  await uploads.close();
});

test.each([413, 400])("status %i of a proxy is no refusal of the server", async (status) => {
  const path = artifact(watched().folder, 100);
  server.proxy = { status, body: "<html>Request Entity Too Large</html>" };
  const { uploads, next } = await uploading(watched().folder);
  expect(await next()).toMatchObject({
    kind: "not-uploaded",
    why: expect.stringMatching(/not an answer of the server: probably a proxy.*tried again$/),
  });
  expect(isSent(path)).toBe(false);
  server.proxy = null;
  expect(await next()).toMatchObject({ kind: "uploaded" });
  await uploads.close();
});

test.each([
  ["the file", 1, /^uploaded$/],
  ["the file twice", 2, /^uploaded$/],
  ["the file each time", 100, /^not-uploaded$/],
])("damaged on the way: %s", async (_, damaged, outcome) => {
  const path = artifact(watched().folder, 100);
  server.damaged = damaged;
  const { uploads, next } = await uploading(watched().folder);
  expect((await next())?.kind).toMatch(outcome);
  expect(isSent(path)).toBe(damaged < 100);
  server.damaged = 0;
  if (damaged === 100) {
    expect(await next()).toMatchObject({ kind: "uploaded" });
  }
  expectSame(path);
  await uploads.close();
});

test.each([
  [503, "the disk is full"],
  [401, "this needs a token of scope ingest"],
  [404, "no such route"],
])("status %i is tried again", async (status, error) => {
  const path = artifact(watched().folder, 100);
  server.refusal = { status, error };
  const { uploads, next } = await uploading(watched().folder);
  expect(await next()).toMatchObject({
    kind: "not-uploaded",
    why: expect.stringContaining("tried again"),
  });
  expect(isSent(path)).toBe(false);
  server.refusal = null;
  expect(await next()).toMatchObject({ kind: "uploaded" });
  expectSame(path);
  await uploads.close();
});

test("the policy's limit; files that are gone; folders that are no artifacts", async () => {
  const { folder } = watched();
  const path = artifact(folder, 5_000);
  const gone = artifact(folder, 5_000, "gone");
  rmSync(join(gone, "heap-7.json"));
  const other = join(folder, "artifacts", "other");
  mkdirSync(other);
  truncateSync(join(path, "about.json"), readFileSync(join(path, "about.json")).length);
  const { uploads, next } = await uploading(folder);
  expect((await next(1_000)) as { why: string }).toMatchObject({
    why: expect.stringContaining("artifacts.send allows"),
  });
  expect(isSent(path)).toBe(true);
  expect(await next()).toMatchObject({ kind: "not-uploaded", path: gone });
  expect(readdirSync(other)).toEqual([]);
  expect(basename(gone)).toContain("gone");
  await uploads.close();
});
