/** The server as users see it: recording programs to it, queries in the terminal, starting and stopping. */

import { once } from "node:events";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { freeAddress } from "../../src/model/base/free_port.fixture.js";
import { present } from "../../src/model/base/present.js";
import type { ServiceJson, ServicesJson } from "../../src/model/documents/fleet_document.js";
import { openRecording } from "../../src/recording/reader.js";
import { anyInterpreter } from "../environment.js";
import { validate } from "../recorded_app.js";
import { execute, removeScratch, scratch, tidemark } from "../run.js";
import { ask, type RunningServer, startServer } from "./running_server.js";

afterAll(removeScratch);

const python = anyInterpreter().path;
const program = `import os, sys, time
kept = []
def remember(number):
    kept.append(bytearray(number << 20))
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end and not os.path.exists("stop"):
    remember(1)
    time.sleep(0.1)
sys.exit(3)
`;

let folder: string;
let server: RunningServer | null;
beforeEach(() => {
  folder = scratch();
  server = null;
  writeFileSync(join(folder, "app.py"), program);
});
afterEach(async () => {
  await server?.kill();
});

const data = () => join(folder, "data");
const run = (url: string, seconds: string, ...options: string[]) =>
  execute(
    [
      tidemark,
      "run",
      "--to",
      url,
      ...options,
      "-o",
      "app.tidemark",
      "--",
      python,
      "app.py",
      seconds,
    ],
    {
      cwd: folder,
      env: { TIDEMARK_SERVICE: "shop", OTEL_RESOURCE_ATTRIBUTES: "service.version=41,track=blue" },
    },
  );
const fleet = (...words: string[]) => execute([tidemark, "fleet", ...words], { cwd: folder });
const services = async (url: string) => (await ask(`${url}/api/v1/services`)).body as ServicesJson;
const service = async (url: string, name: string) =>
  (await ask(`${url}/api/v1/service?name=${encodeURIComponent(name)}`)).body as ServiceJson;

describe("run --to", () => {
  test("streams the recording byte for byte, and the terminal shows the service", async () => {
    server = await startServer(data());
    const { url } = server;
    const begunMs = Date.now();
    const outcome = run(url, "250");
    await expect.poll(async () => (await services(url)).services[0]?.instances).toBe(1);
    await expect
      .poll(async () => (await services(url)).services[0]?.rssBytes)
      .toBeGreaterThan(30 << 20);
    writeFileSync(join(folder, "stop"), "");
    const { status, stderr } = await outcome;
    expect(status).toBe(3);
    expect(stderr).not.toContain(url);
    // Acknowledged frames reach the database about a second later.
    await expect.poll(async () => (await service(url, "shop")).instances[0]?.endedMs).toBeDefined();
    const list = await fleet("services", "--server", url, "--json");
    const document = validate(list.stdout, "services") as unknown as ServicesJson;
    expect(document.services).toMatchObject([{ service: "shop", versions: ["41"] }]);
    const one = await fleet("service", "shop", "--server", url, "--json");
    const { instances } = validate(one.stdout, "service") as unknown as ServiceJson;
    expect(instances).toMatchObject([{ version: "41", labels: { track: "blue" }, limitBytes: 0 }]);
    const { stream, peakRssBytes } = present(instances[0]);
    expect(peakRssBytes).toBeGreaterThan(30 << 20);
    const stored = readFileSync(join(data(), "streams", `${stream}.tidemark`));
    expect(stored.equals(readFileSync(join(folder, "app.tidemark")))).toBe(true);
    const text = (await fleet("service", "shop", "--server", url)).stdout;
    expect(text).toMatch(/INSTANCE +VERSION.*\n.*ended/);
    const window = `from=${begunMs}&to=${Date.now()}`;
    const { body } = await ask(`${url}/api/v1/profile?service=shop&${window}`);
    const { stacks } = body as { stacks: { stack: { function: string }[]; liveBytes: number }[] };
    expect(stacks[0]?.stack[0]?.function).toBe("remember");
    expect(await server.stop()).toBe(0);
    server = null;
  });

  test("is not affected by an unreachable server, and reports once what was not sent", async () => {
    const { status, stderr } = await run("http://127.0.0.1:9", "2");
    expect(status).toBe(3);
    const lines = stderr.split("\n").filter((line) => line.includes("127.0.0.1:9"));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      /has not taken .* \(nothing listens there\): load it there with: tidemark serve --load .*app\.tidemark/,
    );
    expect(openRecording(join(folder, "app.tidemark")).complete).toBe(true);
  });

  test("is not affected by a server that never answers", async () => {
    const silent = createServer(() => {});
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as { port: number };
    const { status, stderr } = await run(`http://127.0.0.1:${port}`, "2");
    silent.closeAllConnections();
    silent.close();
    expect(status).toBe(3);
    expect(stderr).toContain("it does not answer in time");
  });

  test("continues from the same offset when the server returns", async () => {
    const listen = await freeAddress();
    server = await startServer(data(), { listen });
    const { url } = server;
    const outcome = run(url, "250");
    await expect.poll(async () => (await services(url)).services.length).toBe(1);
    await server.kill();
    const folderOfStreams = join(data(), "streams");
    const received = () =>
      readdirSync(folderOfStreams).map((name) => statSync(join(folderOfStreams, name)).size);
    const [before = 0] = received();
    await sleep(1500);
    server = await startServer(data(), { listen });
    // A sender that ends before it knows that the server is back gives up soon.
    await expect.poll(() => received()[0]).toBeGreaterThan(before);
    writeFileSync(join(folder, "stop"), "");
    const { stderr } = await outcome;
    expect(stderr).not.toContain(url);
    const { instances } = await service(url, "shop");
    expect(instances).toHaveLength(1);
    const stored = join(data(), "streams", `${present(instances[0]).stream}.tidemark`);
    expect(readFileSync(stored).equals(readFileSync(join(folder, "app.tidemark")))).toBe(true);
  });

  test.each([
    [["--to", "checkout"], /checkout is not the address of a server/],
    [["--to", "ftp://host"], /not an http or https address/],
    [["--to", "http://me:secret@host"], /--token-file/],
    [["--token-file", "x"], /no effect without --to/],
    [["--to", "http://h", "--token-file", "none"], /no such token file: none/],
  ])("%j is refused before anything runs", async (options, line) => {
    const outcome = await execute([tidemark, "run", ...options, "--", python, "app.py", "1"], {
      cwd: folder,
    });
    expect([outcome.status, outcome.stdout]).toEqual([2, ""]);
    expect(outcome.stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(outcome.stderr).toMatch(line);
  });
});

describe("serve", () => {
  test("loads recordings, each once", async () => {
    await execute([tidemark, "run", "-o", "app.tidemark", "--", python, "app.py", "1"], {
      cwd: folder,
    });
    const path = join(folder, "app.tidemark");
    server = await startServer(data(), { options: ["--load", path, path] });
    const first = await service(server.url, "app");
    expect(first.instances).toHaveLength(1);
    await server.stop();
    server = await startServer(data(), { options: ["--load", path] });
    const second = await service(server.url, "app");
    expect(second.instances.map(({ rssBytes, stream }) => [rssBytes, stream])).toEqual(
      first.instances.map(({ rssBytes, stream }) => [rssBytes, stream]),
    );
    const { status, body } = await ask(
      `${server.url}/api/v1/instance/report?id=${present(first.instances[0]).stream}`,
    );
    expect([status, (body as string).length > 1000]).toEqual([200, true]);
  });

  const refused = async (...options: string[]) => {
    const outcome = await execute([tidemark, "serve", ...options], { cwd: folder });
    expect(outcome.stdout).toBe("");
    const lines = outcome.stderr.trimEnd().split("\n");
    return { status: outcome.status, line: lines.at(-1) ?? "", count: lines.length };
  };

  test("names a port and a folder that are in use", async () => {
    server = await startServer(data());
    const address = server.url.replace("http://", "");
    const port = await refused("--listen", address, "--store", `duckdb:${join(folder, "other")}`);
    expect(port).toMatchObject({ status: 2, count: 1 });
    expect(port.line).toMatch(/TM-E081 cannot listen on .*: another program listens there/);
    const busy = await refused("--listen", "127.0.0.1:0", "--store", `duckdb:${data()}`);
    expect(busy).toMatchObject({ status: 2, count: 1 });
    expect(busy.line).toContain(`is in use by another server, process ${server.child.pid}`);
  });

  test("does not listen beyond loopback without a token", async () => {
    const { status, line } = await refused("--listen", "0.0.0.0:0", "--store", `duckdb:${data()}`);
    expect([status, line]).toEqual([2, expect.stringContaining("no token protects the server")]);
  });

  test("refuses a folder of a newer version, and leaves it as it is", async () => {
    server = await startServer(data());
    await server.stop();
    server = null;
    const instance = await DuckDBInstance.create(join(data(), "meta.duckdb"));
    const connection = await instance.connect();
    await connection.run("UPDATE about SET version = 99");
    connection.closeSync();
    instance.closeSync();
    const { line, count } = await refused("--listen", "127.0.0.1:0", "--store", `duckdb:${data()}`);
    expect(count).toBe(1);
    expect(line).toMatch(
      /has format version 99, this Tidemark reads version 2; a newer Tidemark wrote it/,
    );
  });

  test.each([
    [["--store", "postgres://host"], /this store is not known/],
    [["--store", "clickhouse://127.0.0.1:1"], /cannot use clickhouse:.*no server listens there/],
    [
      ["--store", "duckdb:/proc/none"],
      /TM-E004 cannot write \/proc\/none: no such file or directory$/m,
    ],
    [["--listen", "nowhere"], /an address such as 127\.0\.0\.1:7070/],
    [["--listen", "127.0.0.1:99999"], /an address such as 127\.0\.0\.1:7070/],
    [["--load", "none.tidemark"], /no such recording: none\.tidemark/],
    [["--load", "app.py"], /is not a Tidemark recording/],
    [["--token-file", "none"], /no such token file/],
    [["--token-file", "app.py"], /line 1 of app\.py is not a token/],
  ])("%j ends in one line", async (options, line) => {
    const store = options[0] === "--store" ? [] : ["--store", `duckdb:${data()}`];
    const outcome = await refused("--listen", "127.0.0.1:0", ...store, ...options);
    expect(outcome.status).toBe(2);
    expect(outcome.count).toBe(1);
    expect(outcome.line).toMatch(line);
  });
});

describe("tokens", () => {
  test("are admitted by scope", async () => {
    const file = join(folder, "tokens");
    writeFileSync(
      file,
      "# for the fleet\ningest aaaaaaaaaaaaaaaa\nread bbbbbbbbbbbbbbbb\n\nadmin cccccccccccccccc\n",
    );
    server = await startServer(data(), { options: ["--token-file", file] });
    const { url } = server;
    const status = async (path: string, token: string, method = "GET") =>
      (await ask(`${url}${path}`, { method, headers: { authorization: `Bearer ${token}` } }))
        .status;
    expect(await status("/api/v1/services", "")).toBe(401);
    expect(await status("/api/v1/services", "aaaaaaaaaaaaaaaa")).toBe(401);
    expect(await status("/api/v1/services", "bbbbbbbbbbbbbbbb")).toBe(200);
    expect(await status("/api/v1/services", "cccccccccccccccc")).toBe(200);
    expect(await status("/api/v1/frames", "bbbbbbbbbbbbbbbb", "POST")).toBe(401);
    expect(await status("/api/v1/frames", "aaaaaaaaaaaaaaaa", "POST")).toBe(415);
    expect(await status("/healthz", "")).toBe(200);
    const without = await fleet("services", "--server", url);
    expect([without.status, without.stderr]).toEqual([3, expect.stringContaining("TM-E083")]);
    const token = join(folder, "token");
    writeFileSync(token, "bbbbbbbbbbbbbbbb\n");
    expect((await fleet("services", "--server", url, "--token-file", token)).status).toBe(0);
    const outcome = await run(url, "1");
    expect(outcome.stderr).toMatch(/has not taken .*this needs a token of scope ingest/);
    expect(server.said()).not.toMatch(/aaaaaaaa|bbbbbbbb|cccccccc/);
  });
});

describe("fleet", () => {
  test("reports in one line that no server answers, or that a question is unknown", async () => {
    const url = `http://${await freeAddress()}`;
    const away = await fleet("services", "--server", url);
    expect([away.status, away.stdout]).toEqual([4, ""]);
    expect(away.stderr).toMatch(
      /TM-E082 no answer from the server .*nothing listens there.*tidemark serve/,
    );
    expect((await fleet("service")).stderr).toMatch(/needs the name of a service/);
    expect((await fleet("weather")).status).toBe(2);
    server = await startServer(data());
    const none = await fleet("service", "nobody", "--server", server.url);
    expect([none.status, none.stderr]).toEqual([
      2,
      expect.stringContaining("no service is called nobody"),
    ]);
    expect((await fleet("services", "--server", server.url)).stdout).toContain(
      "no service reported",
    );
  });
});
