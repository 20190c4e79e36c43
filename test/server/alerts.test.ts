/** Alerts of a real server: to a real Alertmanager and a webhook, on the page, and how people acknowledge and silence them. */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { readEnvironment } from "../../scripts/environment.mjs";
import { freePort } from "../../src/model/base/free_port.fixture.js";
import { present } from "../../src/model/base/present.js";
import type { AlertJson, AlertsJson } from "../../src/model/documents/alert_document.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { launchBrowser } from "../browser.js";
import { execute, removeScratch, scratch, tidemark } from "../run.js";
import { ask, post, type RunningServer, startServer } from "./running_server.js";

afterAll(removeScratch);

const MINUTE = 60_000;
const MIB = 2 ** 20;
const alertmanagerPath =
  readEnvironment().tools[
    "prometheus-alertmanager" as keyof ReturnType<typeof readEnvironment>["tools"]
  ];

let folder: string;
let server: RunningServer | null;
let alertmanager: ChildProcess | null;
/** A webhook: the bodies that it received, and the status that it answers with. */
let hook: { readonly server: Server; readonly url: string; bodies: string[]; status: number };
beforeEach(async () => {
  folder = scratch();
  [server, alertmanager] = [null, null];
  const bodies: string[] = [];
  const own = createServer((incoming, outgoing) => {
    let body = "";
    incoming.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    incoming.on("end", () => {
      bodies.push(body);
      outgoing.writeHead(hook.status).end();
    });
  });
  await new Promise<void>((resolve) => own.listen(0, "127.0.0.1", resolve));
  const { port } = own.address() as AddressInfo;
  hook = { server: own, url: `http://127.0.0.1:${port}/hook`, bodies, status: 200 };
});
afterEach(async () => {
  await server?.kill();
  alertmanager?.kill("SIGKILL");
  hook.server.closeAllConnections();
  hook.server.close();
});

/** `receivers`: lines of YAML. */
async function start(
  receivers: readonly string[],
  options: readonly string[] = [],
  rule = "{when: {silent: 2s}}",
) {
  const config = join(folder, "serve.yaml");
  const lines = receivers.map((line) => `    - ${line}`).join("\n");
  writeFileSync(config, `alerts:\n  every: 1s\n  rules: [${rule}]\n  receivers:\n${lines}\n`);
  server = await startServer(join(folder, "data"), { options: ["--config", config, ...options] });
  return server.url;
}

/** A service on a host that was not heard for twenty minutes. */
async function silentHost(url: string, headers = {}): Promise<AlertJson> {
  const startedMs = Date.now() - 40 * MINUTE;
  const rss = [0, 10, 20].map((minutes) => [minutes * MINUTE, 50 * MIB] as const);
  const bytes = streamBytes({ service: "shop", version: "41", pid: 7, startedMs, rss });
  expect((await post(url, bytes, { headers })).status).toBe(200);
  return expect
    .poll(async () => (await alertsOf(url, headers)).alerts[0])
    .toMatchObject({ cause: "silence", host: "here", state: "firing" })
    .then(async () => present((await alertsOf(url, headers)).alerts[0]));
}

const alertsOf = async (url: string, headers = {}) =>
  (await ask(`${url}/api/v1/alerts`, { headers })).body as AlertsJson;
const change = (url: string, id: string, what: string, body: object, headers = {}) =>
  ask(`${url}/api/v1/alerts/${id}/${what}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

test("a webhook is notified once, also after a restart, and not while it fails", async () => {
  hook.status = 503;
  let url = await start([`{webhook: "${hook.url}", allow_local: true}`]);
  await silentHost(url);
  await expect.poll(async () => (await alertsOf(url)).receivers[0]?.error).toBe("it answers 503");
  hook.status = 200;
  await expect.poll(async () => (await alertsOf(url)).receivers[0]?.acceptedMs).toBeGreaterThan(0);
  const accepted = hook.bodies.length;
  expect(JSON.parse(hook.bodies.at(-1) ?? "")).toMatchObject({
    ...{ version: "4", status: "firing" },
    commonLabels: { alertname: "TidemarkMemorySilence", host: "here" },
  });
  await present(server).stop();
  url = await start([`{webhook: "${hook.url}", allow_local: true}`]);
  const { evaluatedMs } = await alertsOf(url);
  await expect.poll(async () => (await alertsOf(url)).evaluatedMs).toBeGreaterThan(evaluatedMs);
  expect((await alertsOf(url)).alerts).toMatchObject([{ state: "firing" }]);
  expect(hook.bodies).toHaveLength(accepted);
});

test("a receiver on this host needs allow_local, and its refusal is shown", async () => {
  const url = await start([`{webhook: "${hook.url}", name: pager}`]);
  await silentHost(url);
  await expect
    .poll(async () => (await execute([tidemark, "fleet", "alerts", "--server", url])).stdout)
    .toMatch(/notifying pager failed: 127\.0\.0\.1 is an address of this host/);
  expect(hook.bodies).toEqual([]);
});

test("people acknowledge and silence with a token of scope admin, and only from the own pages", async () => {
  const tokens = join(folder, "tokens");
  const [reader, admin] = ["reader-reader-reader", "admin-admin-admin-ad"];
  writeFileSync(tokens, `read ${reader}\nadmin ${admin}\n`);
  const url = await start(
    [`{webhook: "${hook.url}", allow_local: true}`],
    [...["--token-file", tokens]],
  );
  const [asReader, asAdmin] = [reader, admin].map((token) => ({
    authorization: `Bearer ${token}`,
  }));
  const { id } = await silentHost(url, asAdmin);
  expect((await change(url, id, "silence", { forMs: 1000 }, asReader)).status).toBe(401);
  expect((await alertsOf(url, asReader)).alerts[0]).not.toHaveProperty("silenced");
  const other = { ...asAdmin, origin: "https://elsewhere.example" };
  expect((await change(url, id, "acknowledge", {}, other)).status).toBe(403);
  const plain = { ...asAdmin, "content-type": "text/plain" };
  expect((await change(url, id, "acknowledge", {}, plain)).status).toBe(415);
  expect((await change(url, "0000", "acknowledge", {}, asAdmin)).status).toBe(404);
  for (const wrong of [{ forMs: -1 }, { forMs: 1e12 }, {}, { forMs: 1, more: 1 }, { forMs: "1" }]) {
    expect((await change(url, id, "silence", wrong, asAdmin)).status).toBe(400);
  }
  const noted = { by: "ann", note: "known" };
  expect((await change(url, id, "acknowledge", noted, asAdmin)).body).toMatchObject({
    acknowledged: noted,
  });
  const silenced = (await change(url, id, "silence", { forMs: 60_000 }, asAdmin)).body as AlertJson;
  expect(silenced.silenced?.untilMs).toBeGreaterThan(Date.now());
  await change(url, id, "silence", { forMs: 0 }, asAdmin);
  await change(url, id, "acknowledge", { undo: true }, asAdmin);
  const [alert] = (await alertsOf(url, asAdmin)).alerts;
  expect(alert).not.toHaveProperty("silenced");
  expect(alert).not.toHaveProperty("acknowledged");
  await expect
    .poll(() => present(server).said())
    .toMatch(/"audit":true.*"did":"acknowledge".*"by":"ann"/);
});

test("an alert is acknowledged and silenced on the page", async () => {
  const url = await start([`{webhook: "${hook.url}", allow_local: true}`]);
  const { id } = await silentHost(url);
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    await page.goto(`${url}/alerts`);
    await page.getByRole("button", { name: "Acknowledge", exact: true }).click();
    await page.getByRole("button", { name: "Acknowledged" }).waitFor();
    await page.getByRole("button", { name: "Silence 1 h" }).click();
    await page.getByRole("button", { name: "Silenced until" }).waitFor();
  } finally {
    await browser.close();
  }
  const alert = (await alertsOf(url)).alerts.find((each) => each.id === id);
  expect(alert).toHaveProperty("acknowledged");
  expect(alert?.silenced?.untilMs).toBeGreaterThan(Date.now() + 50 * MINUTE);
});

test("Services shows how much of its limit a service uses, and how many of its alerts fire", async () => {
  const webhook = `{webhook: "${hook.url}", allow_local: true}`;
  const url = await start([webhook], [], "{when: {oom_kills: 1, within: 1h}}");
  const startedMs = Date.now() - 10 * MINUTE;
  const rss = Array.from({ length: 10 }, (_, n) => [n * MINUTE, 50 * MIB] as const);
  const figures = { cgroupLimitBytes: [[0, 200 * MIB]] } as const;
  const shop = { service: "shop", pid: 7, startedMs, rss, figures };
  const plans = [
    { ...shop, killedAfterMs: [8 * MINUTE] },
    { ...shop, service: "pay", pid: 8, figures: {} },
  ];
  for (const plan of plans) {
    expect((await post(url, streamBytes(plan))).status).toBe(200);
  }
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    await page.goto(url);
    const cellsOf = (service: string) =>
      page.getByRole("row").filter({ hasText: service }).getByRole("gridcell").allInnerTexts();
    await expect.poll(async () => (await cellsOf("shop")).at(-1)).toBe("1");
    expect(await cellsOf("shop")).toContain("25 %");
    expect((await cellsOf("pay")).at(-1)).toBe("–");
    expect(await cellsOf("pay")).not.toContain("25 %");
    // A service without a limit is last in both directions.
    const heading = page.getByRole("columnheader", { name: "Of limit" });
    for (const direction of ["descending", "ascending"]) {
      await heading.getByRole("button").click();
      await expect.poll(() => heading.getAttribute("aria-sort")).toBe(direction);
      expect(await page.locator("[aria-rowindex]").allInnerTexts()).toEqual([
        expect.stringContaining("shop"),
        expect.stringContaining("pay"),
      ]);
    }
  } finally {
    await browser.close();
  }
});

test.skipIf(alertmanagerPath === null)("Debian's Alertmanager takes the alerts", async () => {
  const config = join(folder, "alertmanager.yaml");
  writeFileSync(config, "route: {receiver: none}\nreceivers: [{name: none}]\n");
  const port = await freePort();
  alertmanager = spawn(
    present(alertmanagerPath),
    [
      ...[`--config.file=${config}`, `--storage.path=${join(folder, "alertmanager")}`],
      ...[`--web.listen-address=127.0.0.1:${port}`, "--cluster.listen-address="],
    ],
    { stdio: "ignore" },
  );
  const address = `http://127.0.0.1:${port}`;
  const url = await start([`{alertmanager: "${address}", allow_local: true}`]);
  await silentHost(url);
  await expect
    .poll(async () =>
      ask(`${address}/api/v2/alerts`).then(
        ({ body }) => body,
        () => null,
      ),
    )
    .toMatchObject([
      {
        labels: { alertname: "TidemarkMemorySilence", host: "here", cause: "silence" },
        annotations: { summary: expect.stringContaining("Host here sends nothing since") },
        generatorURL: `${url}/alerts`,
        status: { state: "active" },
      },
    ]);
});
