/** A job on two hosts, one of whose ranks grows: the server finds it, and asks the collectors of both hosts at one moment. */
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import type { ArtifactJson, ArtifactsJson } from "../../src/model/documents/artifact_document.js";
import type { RequestsJson } from "../../src/model/documents/request_document.js";
import { ARTIFACTS_PATH } from "../../src/model/wire/artifacts.js";
import { REQUESTS_PATH } from "../../src/model/wire/requests_path.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { anyInterpreter, environment, isRoot } from "../environment.js";
import { plainEnvironment, tidemark, until } from "../run.js";
import { ask, post, type RunningServer, startServer } from "../server/running_server.js";
import { withWatchTest } from "./watched.js";

const HOSTS = ["host-a", "host-b"] as const;
const RANKS = 2;
const HOUR = 3_600_000;
const MIB = 2 ** 20;

const watched = withWatchTest();
let server: RunningServer | null = null;
afterEach(async () => {
  await server?.kill();
  server = null;
});

/** Has mapped a file with the name of CUDA's library, as a program with a device has. */
const RANK = `import mmap, os, time
library = open(os.environ["LIBRARY"], "r+b")
kept = mmap.mmap(library.fileno(), 4096)
while True: time.sleep(0.1)
`;

/** A host with a name, process ids and a collector of its own, and the ranks of the job that run on it. */
function startHost(host: string, service: string, url: string) {
  const { folder, children } = watched();
  const own = join(folder, host);
  mkdirSync(own);
  const script = `hostname ${host}
for rank in $(seq 0 ${RANKS - 1}); do
  RANK=$rank "$PYTHON" -c "$PROGRAM" &
done
exec "$TIDEMARK" watch --to ${url} --config "$POLICY" --folder "${own}/recordings"`;
  const words = ["--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script];
  const child = spawn(present(environment.tools.unshare), words, {
    env: {
      ...plainEnvironment(own),
      ...{ PYTHON: anyInterpreter().path, PROGRAM: RANK, TIDEMARK: tidemark },
      ...{ POLICY: join(folder, "policy.yaml"), LIBRARY: join(folder, "libcuda.so.1") },
      ...{ TIDEMARK_SERVICE: service, TORCH_NCCL_DEBUG_INFO_TEMP_FILE: join(own, "dump_") },
    },
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
  });
  children.push(child);
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  return { own, said: () => said };
}

function recordingsIn(own: string): string[] {
  const folder = join(own, "recordings");
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".tidemark")) : [];
}

function artifactIn(own: string): { readonly path: string; readonly about: ArtifactJson } | null {
  const folder = join(own, "recordings/artifacts");
  try {
    const [name = ""] = readdirSync(folder);
    const path = join(folder, name);
    return { path, about: JSON.parse(readFileSync(join(path, "about.json"), "utf8")) };
  } catch {
    return null; // not yet
  }
}

test.skipIf(!isRoot || environment.tools.unshare === null)(
  "one odd rank: the ranks of all hosts are captured at the same moment, and all is on the server",
  async () => {
    const { folder, name } = watched();
    const service = `${name}-job`;
    const library = join(folder, "libcuda.so.1");
    writeFileSync(library, "");
    truncateSync(library, 4096);
    watched().policy("{warm_up: 1h}");
    const config = join(folder, "server.yaml");
    writeFileSync(config, `store: "duckdb:${join(folder, "data")}"\nalerts: {every: 10s}\n`);
    server = await startServer(null, { options: ["--config", config] });
    const { url } = server;
    const hosts = HOSTS.map((host) => startHost(host, service, url));
    await until(() => hosts.every(({ own }) => recordingsIn(own).length === RANKS));
    for (const [at, { own }] of hosts.entries()) {
      for (let rank = 0; rank < RANKS; rank++) {
        writeFileSync(join(own, `dump_${rank}`), `of rank ${rank} on ${HOSTS[at]}`);
      }
    }

    // Three days of a job with eight ranks, the fourth of which leaks.
    const nowMs = Date.now();
    const hours = Array.from({ length: 72 * 3 }, (_, step) => step / 3);
    const startedMs = nowMs - (hours.at(-1) ?? 0) * HOUR - 30_000;
    for (let pid = 11; pid < 19; pid++) {
      const rss = hours.map(
        (hour) => [hour * HOUR, (1000 + (pid === 14 ? 10 * hour : Math.sin(hour))) * MIB] as const,
      );
      await post(url, streamBytes({ service, pid, startedMs: startedMs + pid * 1000, rss }));
    }

    await until(() => hosts.every(({ said }) => said().includes("the memory of all ranks")));
    const { body } = await ask(`${url}${REQUESTS_PATH}`);
    const [request] = (body as RequestsJson).requests.filter(({ captures }) => captures);
    const atMs = present(request?.captures?.atMs);
    expect(request).toMatchObject({ service, by: "the diagnosis" });
    for (const [at, { own }] of hosts.entries()) {
      const { path, about } = present(artifactIn(own));
      expect(about).toMatchObject({ service, host: HOSTS[at] });
      // A host that would start more than ten seconds late drops the capture.
      expect(about.timeMs - atMs).toBeGreaterThanOrEqual(-100);
      const texts = about.files.map((file) => readFileSync(join(path, file.name), "utf8"));
      expect(texts.sort()).toEqual(
        Array.from({ length: RANKS }, (_, rank) => `of rank ${rank} on ${HOSTS[at]}`),
      );
    }
    const answers = async () => {
      const { body } = await ask(`${url}${REQUESTS_PATH}`);
      const found = (body as RequestsJson).requests.find(({ id }) => id === request?.id);
      return (found?.hosts ?? []).map(({ host, programs }) => `${host}: ${programs}`).sort();
    };
    await until(async () => (await answers()).length === HOSTS.length);
    expect(await answers()).toEqual(HOSTS.map((host) => `${host}: ${RANKS}`));
    await until(async () => {
      const { body } = await ask(`${url}${ARTIFACTS_PATH}`);
      const { artifacts } = body as ArtifactsJson;
      return HOSTS.every((host) => artifacts.some((each) => each.host === host));
    });
  },
);
