/** The memory of all ranks of a job at one moment, asked for by a real server. */
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { ArtifactJson, ArtifactsJson } from "../../src/model/documents/artifact_document.js";
import type { RequestsJson } from "../../src/model/documents/request_document.js";
import { ARTIFACTS_PATH } from "../../src/model/wire/artifacts.js";
import { REQUESTS_PATH } from "../../src/model/wire/requests_path.js";
import { validate } from "../recorded_app.js";
import { until } from "../run.js";
import { ask, type RunningServer, startServer } from "../server/running_server.js";
import { IDLE, stopped, withWatchTest } from "./watched.js";

const watched = withWatchTest();
let server: RunningServer | null = null;
afterEach(async () => {
  await server?.kill();
  server = null;
});

/** Has mapped a file with the name of CUDA's library, as a program with a device has. */
const mapping = (library: string) => `import mmap, time
library = open(${JSON.stringify(library)}, "r+b")
kept = mmap.mmap(library.fileno(), 4096)
while True: time.sleep(0.1)
`;

test("all ranks of a host are captured together at the moment of the request, with the dumps that torch wrote", async () => {
  const { name, folder } = watched();
  const library = join(folder, "libcuda.so.1");
  writeFileSync(library, "");
  truncateSync(library, 4096);
  const dumps = join(folder, "dump_");
  const rank = (n: number) =>
    watched().python(mapping(library), "job", [
      "env",
      `RANK=${n}`,
      `TORCH_NCCL_DEBUG_INFO_TEMP_FILE=${dumps}`,
    ]);
  const ranks = [rank(0), rank(1)];
  watched().python(IDLE, "plain");
  for (const n of [0, 1]) {
    writeFileSync(`${dumps}${n}`, `of rank ${n}`);
  }
  const data = join(folder, "data");
  mkdirSync(data);
  const nowMs = Date.now();
  // On a busy machine, half of the time passes before the collector has seen the ranks.
  const momentMs = nowMs + 40_000;
  const asked = (service: string, atMs: number) => ({
    ...{ id: randomUUID(), service, timeMs: nowMs, untilMs: nowMs + 300_000, by: "the diagnosis" },
    ...{ hosts: [], captures: { atMs, what: ["gpu", "flight_recorder"] } },
  });
  const requests = [
    asked(`${name}-job`, momentMs),
    asked(`${name}-plain`, momentMs),
    asked(`${name}-job`, nowMs - 60_000),
  ];
  writeFileSync(
    join(data, "requests.json"),
    JSON.stringify({ schema: "tidemark.requests/1", requests }),
  );
  server = await startServer(data);
  const { url } = server;
  const { child, said } = watched().watch(
    ...["--to", url, "--config", watched().policy("{warm_up: 1h}")],
  );
  await until(() => watched().artifacts().length > 0 && said().includes("the memory of all ranks"));
  const abouts = watched()
    .artifacts()
    .map((path) => JSON.parse(readFileSync(join(path, "about.json"), "utf8")) as ArtifactJson);
  expect(abouts).toHaveLength(1);
  const [about] = abouts;
  expect(about?.timeMs).toBeGreaterThanOrEqual(momentMs - 100);
  const files = ranks.map(({ pid }) => ({
    ...{ name: `flight-recorder-${pid}.dump`, capture: "flight_recorder", pid },
  }));
  expect(about?.files).toHaveLength(2);
  expect(about?.files).toEqual(expect.arrayContaining(files));
  // They have no torch, and that is not passed over.
  for (const { pid } of ranks) {
    expect(about?.problems.join("\n")).toContain(`gpu: process ${pid}`);
  }
  const texts = files.map((file) =>
    readFileSync(join(watched().artifacts()[0] ?? "", file.name), "utf8"),
  );
  expect(texts).toEqual(["of rank 0", "of rank 1"]);

  const answers = async () => {
    const { body } = await ask(`${url}${REQUESTS_PATH}`);
    validate(JSON.stringify(body), "requests");
    return new Map(
      (body as RequestsJson).requests.map(({ id, hosts }) => [
        id,
        hosts.map(({ programs, why }) => `${programs} ${why}`).join(),
      ]),
    );
  };
  await until(async () => [...(await answers()).values()].every((text) => text !== ""));
  const answered = await answers();
  expect(requests.map(({ id }) => answered.get(id))).toEqual([
    "2 ",
    "0 no process of it uses a device",
    "0 the request arrived after its moment",
  ]);
  await until(async () => {
    const { body } = await ask(`${url}${ARTIFACTS_PATH}`);
    return (body as ArtifactsJson).artifacts.some(({ service }) => service === `${name}-job`);
  });
  expect(await stopped(child)).toBe(0);
});
