/** The tables of the server's pages: what they say about instances that do not run, and that no column is cut. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { streamName } from "../../src/recording/sender/stream_name.js";
import { type StreamPlan, streamBytes } from "../../src/recording/streams.fixture.js";
import { withServedPage } from "./fleet_page.js";
import { ask, post, type RunningServer } from "./running_server.js";

const MINUTE = 60_000;
const MIB = 2 ** 20;
const START = Date.now() - 40 * MINUTE;

let server: RunningServer;
let page: Page;
let complaints: string[];
withServedPage((served) => {
  ({ server, page, complaints } = served);
});

async function give(
  plan: Partial<StreamPlan> & Pick<StreamPlan, "service" | "pid">,
  minutes: number,
): Promise<string> {
  const bytes = streamBytes({
    startedMs: START,
    rss: Array.from(
      { length: 4 * minutes },
      (_, n) => [(n * MINUTE) / 4, (100 + 5 * n) * MIB] as const,
    ),
    profiles: Array.from(
      { length: Math.ceil(minutes / 5) },
      (_, n) => [n * 5 * MINUTE, `main;handle;remember ${(10 + 90 * n) * MIB} variance=1`] as const,
    ),
    figures: { cgroupLimitBytes: [[0, 4096 * MIB]] },
    ...plan,
  });
  expect((await post(server.url, bytes)).status).toBe(200);
  return streamName(bytes).slice(0, 8);
}

const cells = async (table: string, text: string) =>
  (
    await page
      .getByRole("grid", { name: table })
      .getByRole("row")
      .filter({ hasText: text })
      .getByRole("gridcell")
      .allInnerTexts()
  ).map((cell) => cell.trim());

describe("an instance that does not run", () => {
  test("is silent or ended in every table, and adds nothing to the growth of its service", async () => {
    const runs = await give({ service: "shop", version: "2", pid: 1 }, 40);
    const silent = await give({ service: "shop", version: "1", pid: 2 }, 20);
    const ended = await give(
      { service: "shop", version: "1", pid: 3, endedAfterMs: 20 * MINUTE },
      20,
    );
    await give({ service: "gone", pid: 4, endedAfterMs: 20 * MINUTE }, 20);
    await give({ service: "mute", pid: 5 }, 20);
    const verdicts = async () =>
      ((await ask(`${server.url}/api/v1/verdicts`)).body as { verdicts: object[] }).verdicts.length;
    await expect.poll(verdicts).toBe(5);
    await page.goto(server.url);
    await page.getByRole("row").filter({ hasText: "gone" }).waitFor();
    expect((await cells("Services", "shop"))[1]).toBe("1");
    for (const [service, state] of [
      ["gone", /^ended \d+ min ago$/],
      ["mute", /^silent for \d+ min$/],
    ] as const) {
      const [, running, rss, ofLimit, growth, limit] = await cells("Services", service);
      expect(running).toMatch(state);
      expect([rss, ofLimit, growth, limit]).toEqual(["–", "–", "–", "–"]);
    }
    await page.goto(`${server.url}/service?name=shop`);
    const states = [
      [runs, /^runs$/],
      [silent, /^silent for \d+ min$/],
      [ended, /^ended \d+ min ago$/],
    ] as const;
    await page.getByRole("row").filter({ hasText: silent }).waitFor();
    for (const [stream, state] of states) {
      expect((await cells("Instances", stream))[5]).toMatch(state);
    }
    const summary = page.getByRole("region", { name: "Summary" });
    expect(await summary.innerText()).toMatch(/Running\s+1\s+1 ended, 1 silent/);
    await page.goto(`${server.url}/service?name=gone`);
    await expect
      .poll(() => summary.innerText())
      .toMatch(/Running\s+ended \d+ min ago\s+1 ended\s+RSS\s+–.*Total growth\s+–/s);
    await page.goto(`${server.url}/verdicts`);
    const table = page.getByRole("grid", { name: "Verdicts" });
    await table.getByRole("row").nth(5).waitFor();
    const rows = (await table.getByRole("row").allInnerTexts()).slice(1);
    expect(rows[0]).toMatch(/^shop\s+2\s.*\sruns\s/s);
    expect(rows.slice(1).filter((row) => /\sruns\s/.test(row))).toEqual([]);
    expect(rows.filter((row) => /ended \d+ min ago/.test(row))).toHaveLength(2);
    expect(rows.filter((row) => /silent for \d+ min/.test(row))).toHaveLength(2);
    expect(complaints).toEqual([]);
  });
});

/** Headings and figures that their column cuts, and all that is outside the window. */
const cut = () =>
  page.evaluate(() => {
    const isCut = (part: Element) =>
      part.scrollWidth > part.clientWidth + 1 ||
      part.getBoundingClientRect().right > innerWidth + 1;
    const parts = document.querySelectorAll(
      ".table-head, .table-head > div, .table-row > .numeric, .verdict-mark, .figure > *, .toolbar > *",
    );
    return [...parts].filter(isCut).map((part) => part.textContent);
  });

test.each([1440, 1280, 390])("no heading, figure or verdict is cut at %i pixels", async (width) => {
  const places = { host: "node-17.eu-central-1.compute.internal", pod: "checkout-7d4b9c8f5-x2x7p" };
  await give({ service: "recommendations", version: "2.42.0", pid: 1, ...places }, 40);
  await give({ service: "checkout", version: "2.42.0", pid: 31_999, ...places }, 40);
  await give({ service: "checkout", version: "2.41.0", pid: 32_000, ...places }, 20);
  await give(
    { service: "gone", version: "2.41.0", pid: 9, ...places, endedAfterMs: 20 * MINUTE },
    20,
  );
  await page.setViewportSize({ width, height: 900 });
  for (const [path, table] of [
    ["/", "Services"],
    ["/verdicts", "Verdicts"],
    ["/verdicts", "Diagnoses"],
    ["/sizes", "Sizes"],
    ["/ingest", "Senders"],
    ["/ingest", "Storage by service"],
    ["/service?name=checkout", "Instances"],
    ["/service?name=checkout&view=growing", "Growing stacks"],
    ["/service?name=checkout&view=compare", "Differences"],
  ] as const) {
    await page.goto(server.url + path);
    await page.getByRole("grid", { name: table }).getByRole("row").nth(1).waitFor();
    expect([path, await cut()]).toEqual([path, []]);
  }
  expect(complaints).toEqual([]);
});
