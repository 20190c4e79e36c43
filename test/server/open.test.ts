/** `tidemark open REC`: one recording in the browser. */
import { existsSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { ServiceJson, ServicesJson } from "../../src/model/documents/fleet_document.js";
import { launchBrowser } from "../browser.js";
import { anyInterpreter } from "../environment.js";
import { execute, removeScratch, scratch, tidemark, until } from "../run.js";
import { watchedPage } from "./fleet_page.js";
import { ask, type RunningServer, startServing } from "./running_server.js";

let browser: Browser;
let server: RunningServer | null = null;
/** Ends the program that is recorded. */
let endProgram = () => {};
beforeAll(async () => {
  browser = await launchBrowser();
});
afterEach(async () => {
  endProgram();
  await server?.kill();
  server = null;
});
afterAll(async () => {
  await browser.close();
  removeScratch();
});

const PROGRAM = `import os, time
kept = []
def remember():
    kept.append(bytearray(1 << 20))
while not os.path.exists("stop"):
    remember()
    time.sleep(0.1)
`;

test("shows a recording that still grows, and leaves nothing behind", async () => {
  const folder = scratch();
  const temporary = scratch();
  writeFileSync(join(folder, "app.py"), PROGRAM);
  endProgram = () => writeFileSync(join(folder, "stop"), "");
  const words = ["run", "-o", "app.tidemark", "--", anyInterpreter().path, "app.py"];
  const recorded = execute([tidemark, ...words], { cwd: folder });
  await until(() => existsSync(join(folder, "app.tidemark")));
  server = await startServing(["open", "app.tidemark"], {
    cwd: folder,
    env: { TMPDIR: temporary },
  });
  const { origin } = new URL(server.url);
  await expect
    .poll(server.said)
    .toMatch(/app\.tidemark is shown at http:\/\/127\.0\.0\.1:\d+\/instance\/\w+/);
  expect(readdirSync(temporary)).toHaveLength(1);

  const lastSeen = async () => {
    const { body } = await ask(`${origin}/api/v1/services`);
    return (body as ServicesJson).services[0]?.rssBytes ?? 0;
  };
  const early = await lastSeen();
  await expect.poll(lastSeen).toBeGreaterThan(early + (3 << 20));
  endProgram();
  expect((await recorded).status).toBe(0);

  const { page, complaints } = await watchedPage(browser, origin);
  await page.goto(server.url);
  await expect.poll(() => page.locator("body").innerText()).toMatch(/remember/);
  await expect.poll(() => page.locator("nav.fleet-path").innerText()).toMatch(/ended/);
  expect(complaints).toEqual([]);
  await page.close();
  expect(await server.stop()).toBe(0);
  server = null;
  expect(readdirSync(temporary)).toEqual([]);
});

test("a recording from years ago is shown whole", async () => {
  const folder = scratch();
  const seconds = Array.from({ length: 60 }, (_, second) => 1_600_000_000 + second);
  const readings = seconds.map((second, n) => `MEM ${100 + n}.0 ${second}\n`);
  writeFileSync(join(folder, "old.dat"), `CMDLINE python old.py\n${readings.join("")}`);
  const words = ["import", "old.dat", "-o", "old.tidemark"];
  expect((await execute([tidemark, ...words], { cwd: folder })).status).toBe(0);
  server = await startServing(["open", "old.tidemark"], { cwd: folder, env: { TMPDIR: folder } });
  const { origin, pathname } = new URL(server.url);
  const window = "from=1600000000000&to=1600000060000";
  const { body } = await ask(`${origin}/api/v1/services?${window}`);
  expect((body as ServicesJson).services).toMatchObject([{ service: "old" }]);
  const { page, complaints } = await watchedPage(browser, origin);
  await page.goto(`${origin}${pathname}`);
  await expect.poll(() => page.locator("body").innerText()).toMatch(/159 MiB/);
  expect(complaints).toEqual([]);
  await page.close();
});

test("a recording that another one replaces while it is followed is named, and stays as it was", async () => {
  const folder = scratch();
  writeFileSync(join(folder, "app.py"), "kept = [bytearray(1 << 20) for _ in range(20)]\n");
  const record = async (name: string) => {
    const words = ["run", "-o", name, "--", anyInterpreter().path, "app.py"];
    expect((await execute([tidemark, ...words], { cwd: folder })).status).toBe(0);
  };
  await record("app.tidemark");
  server = await startServing(["open", "app.tidemark"], { cwd: folder, env: { TMPDIR: folder } });
  const { origin } = new URL(server.url);
  const instances = async () => {
    const { body } = await ask(`${origin}/api/v1/service?name=app`);
    return (body as ServiceJson).instances.map(({ stream, rssBytes }) => ({ stream, rssBytes }));
  };
  const before = await instances();
  await record("other.tidemark");
  renameSync(join(folder, "other.tidemark"), join(folder, "app.tidemark"));
  await expect
    .poll(server.said)
    .toMatch(/app\.tidemark: another file took its place; open it again to see that one/);
  expect(await instances()).toEqual(before);
});

test("what is no recording is refused in one line, and leaves nothing behind", async () => {
  const folder = scratch();
  const temporary = scratch();
  writeFileSync(join(folder, "notes.txt"), "no recording");
  for (const name of ["notes.txt", "missing.tidemark", "."]) {
    const { status, stderr } = await execute([tidemark, "open", name], {
      cwd: folder,
      env: { TMPDIR: temporary },
    });
    expect([name, status, stderr.trim().split("\n").length]).toEqual([name, 2, 1]);
  }
  expect(readdirSync(temporary)).toEqual([]);
});
