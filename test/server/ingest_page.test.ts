/** The pages Ingest and Artifacts in a real browser. */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { streamName } from "../../src/recording/sender/stream_name.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { scratch } from "../run.js";
import { withServedPage } from "./fleet_page.js";
import { pprofOf, pushMessage } from "./profiles.js";
import { ask, post, type RunningServer } from "./running_server.js";

const EVIL = `"><img src=x onerror="throw 1"><script>throw 2</script>`;
const sum = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

let server: RunningServer;
let page: Page;
let complaints: string[];
withServedPage(
  (served) => {
    ({ server, page, complaints } = served);
  },
  () => {
    const config = join(scratch(), "serve.yaml");
    writeFileSync(config, "label_values: 2\n");
    return ["--config", config];
  },
);

const words = async (selector: string) =>
  (await page.locator(selector).innerText()).replace(/\s+/g, " ").trim();
const recording = (pid: number, service = "checkout") =>
  streamBytes({
    ...{ service, version: "41", pid, startedMs: Date.now() - 600_000 },
    labels: { request: `r${pid}` },
    rss: Array.from({ length: 10 }, (_, n) => [n * 60_000, (100 + n * pid) * 2 ** 20] as const),
    profiles: [[60_000, `main;load ${2 ** 20 * 50} variance=1`]],
  });

async function upload(service: string, reason: string): Promise<string> {
  const files = { "recording.tidemark": recording(9), "heap-9.json": Buffer.from('{"a": 1}') };
  const about = Buffer.from(
    JSON.stringify({
      ...{ schema: "tidemark.artifact/1", service, version: "41", env: "", host: "web-1", pid: 9 },
      ...{ command: ["python"], timeMs: Date.now(), reason, lastMoment: true, problems: [] },
      files: [
        { name: "recording.tidemark", capture: "recording", pid: 0 },
        { name: "heap-9.json", capture: "snapshot", pid: 9 },
      ],
    }),
  );
  const id = sum(about).slice(0, 32);
  for (const [name, bytes] of Object.entries({ ...files, "about.json": about })) {
    const { status } = await ask(
      `${server.url}/api/v1/artifacts/${id}/${name}?sha256=${sum(bytes)}&bytes=${bytes.length}`,
      {
        method: "PUT",
        headers: { "content-type": "application/octet-stream" },
        body: new Uint8Array(bytes),
      },
    );
    expect(status).toBe(200);
  }
  return id;
}

test("Ingest shows senders, refused requests, storage and labels, and what fills it", async () => {
  await page.goto(`${server.url}/ingest`);
  await expect.poll(() => words("main")).toContain(`tidemark run --to ${server.url} app.py`);
  const streams = [1, 2, 3].map((pid) => recording(pid));
  for (const bytes of streams) {
    expect((await post(server.url, bytes)).status).toBe(200);
  }
  await ask(`${server.url}/push.v1.PusherService/Push`, {
    method: "POST",
    headers: { "content-type": "application/proto" },
    body: new Uint8Array(
      pushMessage({ service_name: EVIL, pod: "p" }, pprofOf({ inuse_space: 4096 }), "1"),
    ),
  });
  const broken = await ask(`${server.url}/v1development/profiles`, {
    method: "POST",
    headers: { "content-type": "application/x-protobuf" },
    body: "garbage",
  });
  expect(broken.status).toBe(400);
  await expect
    .poll(() => words("[aria-label='Storage'][class=panel]"), { interval: 500 })
    .toMatch(/as sent 1 [\d.]+ .iB .* 2 days old.*means of 10 minutes 0.*checkout \d+ \d+/);
  await expect.poll(() => words("[aria-label='Labels'][class=panel]")).toMatch(/request 2 1/);
  const senders = () => words("[aria-label='Senders'][class=panel]");
  await expect.poll(senders).toMatch(/checkout .*tidemark/);
  await expect.poll(senders).toContain("pyroscope");
  await expect.poll(senders).toContain(EVIL.replace(/\s+/g, " "));
  await expect
    .poll(() => words("[aria-label='Refused requests']"))
    .toContain("/v1development/profiles");
  await page.getByRole("button", { name: "Dark colours" }).click();
  await page.setViewportSize({ width: 390, height: 800 });
  await expect
    .poll(() => page.evaluate(() => document.documentElement.scrollWidth))
    .toBeLessThanOrEqual(390);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByRole("searchbox", { name: "Search senders" }).fill("checkout");
  await expect.poll(() => words("[aria-label='Senders'][class=panel]")).toContain("3 streams");
  await expect.poll(() => page.url()).toContain("q=checkout");
  // With the keyboard.
  await page.getByRole("grid", { name: "Senders" }).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect.poll(() => new URL(page.url()).pathname).toMatch(/^\/instance\/[0-9a-f]{32}$/);
  expect(streams.map(streamName)).toContain(
    new URL(page.url()).pathname.slice("/instance/".length),
  );
  expect(complaints).toEqual([]);
});

test("Artifacts lists what collectors sent, opens recordings and downloads files", async () => {
  await page.goto(`${server.url}/artifacts`);
  await expect.poll(() => words("main")).toContain("tidemark watch");
  const id = await upload("checkout", "RSS was 512 MiB above its baseline");
  await upload(EVIL, EVIL);
  await expect.poll(() => words("main")).toContain("RSS was 512 MiB above its baseline");
  await expect
    .poll(() => words("main"))
    .toMatch(/last moment checkout version 41 .* process 9 on web-1/);
  const checkout = page.getByRole("article", { name: /^checkout/ });
  const saving = page.waitForEvent("download");
  await checkout.getByRole("button", { name: "Download heap-9.json" }).click();
  expect((await saving).suggestedFilename()).toBe("heap-9.json");
  await page.getByRole("button", { name: "Dark colours" }).click();
  await page.setViewportSize({ width: 390, height: 800 });
  await expect
    .poll(() => page.evaluate(() => document.documentElement.scrollWidth))
    .toBeLessThanOrEqual(390);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByRole("searchbox", { name: "Search artifacts" }).fill("baseline");
  await expect.poll(() => page.getByRole("article").count()).toBe(1);
  await checkout.getByRole("link", { name: "Open" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("[data-testid=flame][data-frames]");
  await expect.poll(() => new URL(page.url()).pathname).toBe(`/artifacts/${id}/recording.tidemark`);
  // The address alone opens it, too.
  await page.reload();
  await page.waitForSelector("[data-testid=flame][data-frames]");
  await page.getByRole("link", { name: "Artifacts" }).first().click();
  await expect.poll(() => page.getByRole("article").count()).toBe(2);
  expect(complaints).toEqual([]);
});
