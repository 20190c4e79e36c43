/** Names with "%" on the server's pages: an address that is decoded once too often shows another name, or none. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { streamName } from "../../src/recording/sender/stream_name.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { withServedPage } from "./fleet_page.js";
import { post, type RunningServer } from "./running_server.js";

const MINUTE = 60_000;
const MIB = 2 ** 20;
const START = Date.now() - 20 * MINUTE;

let server: RunningServer;
let page: Page;
let complaints: string[];
withServedPage((served) => {
  ({ server, page, complaints } = served);
});

const words = async (selector: string) =>
  (await page.locator(selector).innerText()).replace(/\s+/g, " ").trim();
const drawn = () => page.waitForSelector("[data-testid=flame][data-frames]");
/** `other`: of another program, from the same path of an address if "%25" and "%2F" are decoded. */
const NAMES = [
  { service: "50% off", version: "1%", function: "half%20_of" },
  { service: "50%25 off", version: "1%25", function: "half%2F_of" },
  { service: "%2Fcart?a=b&c#d+e", version: "%", function: "%s" },
];

/** `first`: pid of the first service's process. */
async function give(
  { service, version, function: name }: (typeof NAMES)[number],
  first = 1,
): Promise<string> {
  const bytes = streamBytes({
    ...{ service, version, pid: first + NAMES.findIndex((each) => each.service === service) },
    startedMs: START,
    rss: Array.from({ length: 20 }, (_, n) => [n * MINUTE, (100 + n) * MIB] as const),
    profiles: Array.from(
      { length: 4 },
      (_, n) => [n * 5 * MINUTE, `main;${name} ${(10 + n) * MIB} variance=1`] as const,
    ),
  });
  expect((await post(server.url, bytes)).status).toBe(200);
  return streamName(bytes);
}

test("services, versions and functions whose names contain % are shown as they are", async () => {
  for (const names of NAMES) {
    await give(names);
    await give({ ...names, version: "other" }, 10);
  }
  for (const { service, version, function: name } of NAMES) {
    const stream = (await give({ service, version, function: name })).slice(0, 8);
    await page.goto(server.url);
    await page.getByRole("grid", { name: "Services" }).getByText(service, { exact: true }).click();
    await drawn();
    await expect.poll(() => words("[aria-label='Path']")).toBe(`Services ${service}`);
    await expect
      .poll(() => words("[aria-label='Memory over time']"))
      .toContain(`${version} 119 MiB`);
    await page.getByLabel("Version").selectOption(version);
    await page.getByRole("tab", { name: "Sites" }).click();
    await expect.poll(() => words("[aria-label='Profile']")).toContain(name);
    // Anyone who opens the address sees the same.
    await page.reload();
    await expect.poll(() => words("[aria-label='Profile']")).toContain(name);
    expect(new URL(page.url()).searchParams.get("name")).toBe(service);
    expect(new URL(page.url()).searchParams.get("version")).toBe(version);
    await page.getByRole("tab", { name: "Growing" }).click();
    await expect.poll(() => words("[aria-label='Profile']")).toContain(name);
    await page.getByRole("row").filter({ hasText: stream }).click();
    await drawn();
    await page.getByLabel("Path").getByText(service, { exact: true }).click();
    await expect.poll(() => words("[aria-label='Path']")).toBe(`Services ${service}`);
  }
  await page.goto(server.url);
  await page.getByRole("searchbox").fill("50%2");
  await expect.poll(() => page.getByRole("row").count()).toBe(2);
  expect(complaints).toEqual([]);
});
