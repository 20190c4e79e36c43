/** The heat map of a service's instances: its answer, and what a real browser shows of it. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import { HEAT_MAP_PATH, type HeatMapAnswer } from "../../src/model/wire/heat_map.js";
import { streamName } from "../../src/recording/sender/stream_name.js";
import { type StreamPlan, streamBytes } from "../../src/recording/streams.fixture.js";
import { withServedPage } from "./fleet_page.js";
import { ask, post, type RunningServer } from "./running_server.js";

const MINUTE = 60_000;
const MIB = 2 ** 20;
const START = Date.now() - 40 * MINUTE;
const EVIL = `"><img src=x onerror="throw 1"><script>throw 2</script>`;

let server: RunningServer;
let page: Page;
let complaints: string[];

withServedPage((served) => {
  ({ server, page, complaints } = served);
});

/** Instances of about 200 MiB; the odd one gains 10 MiB a minute. */
async function give(count: number, odd: number, some: Partial<StreamPlan> = {}): Promise<string[]> {
  const streams: string[] = [];
  for (let pid = 1; pid <= count; pid++) {
    const bytes = streamBytes({
      ...{ service: "shop", version: "7", pid, pod: `shop-${pid}`, startedMs: START },
      rss: Array.from({ length: 38 }, (_, n) => [
        n * MINUTE,
        (200 + ((pid * 7 + n * 3) % 11) + (pid === odd ? 10 * n : 0)) * MIB,
      ]),
      figures: { cgroupLimitBytes: [[0, 1000 * MIB]] },
      ...some,
    });
    expect((await post(server.url, bytes)).status).toBe(200);
    streams.push(streamName(bytes));
  }
  return streams;
}

async function answer(words: Record<string, string> = {}) {
  const query = new URLSearchParams({
    ...{ service: "shop", from: String(START), to: String(START + 40 * MINUTE) },
    ...words,
  });
  const { status, body } = await ask(`${server.url}${HEAT_MAP_PATH}?${query}`);
  return { status, body: body as HeatMapAnswer };
}

const words = async (selector: string) =>
  (await page.locator(selector).innerText()).replace(/\s+/g, " ").trim();
const heat = () => page.locator("[data-testid=heat]");
const opened = async (rows: number, search = "") => {
  await page.goto(`${server.url}/service?name=shop&chart=instance${search}`);
  await drawn(rows);
};
const drawn = (rows: number) => page.waitForSelector(`[data-testid=heat][data-rows="${rows}"]`);
/** Moves the pointer onto the map, which what is drawn above it may have moved. */
const point = async (fromRight: number, down: number) => {
  const box = present(await heat().boundingBox());
  const at = [box.x + box.width - fromRight, box.y + down] as const;
  await page.mouse.move(...at);
  return at;
};
/** The colour of the map at a place, as red, green and blue. Each is read from a copy of its own. */
const colourAt = (x: number, y: number) =>
  heat().evaluate(
    (node: HTMLCanvasElement, [left, top]) => {
      const copy = document.createElement("canvas").getContext("2d");
      copy?.drawImage(node, -left, -top);
      return Array.from(copy?.getImageData(0, 0, 1, 1).data ?? []).slice(0, 3);
    },
    [Math.round(x), Math.round(y)] as const,
  );
const chooser = (at: number) => page.locator(".heat-choices select").nth(at);

describe("the answer", () => {
  test("has a row for each instance, the odd one marked, and a bounded size", async () => {
    await give(12, 5, { endedAfterMs: 38.5 * MINUTE });
    await expect
      .poll(async () =>
        (await answer({ steps: "7" })).body.instances?.map(({ odd }) => odd?.siblings),
      )
      .toEqual([11, ...Array.from({ length: 11 }, () => undefined)]);
    const { body } = await answer({ steps: "7" });
    expect(body).toMatchObject({ service: "shop", name: "rssBytes", otherInstances: 0 });
    const [first, ...others] = body.instances;
    expect(first).toMatchObject({
      ...{ pod: "shop-5", version: "7", limitBytes: 1000 * MIB, startedMs: START },
      odd: { siblings: 11 },
    });
    expect((first?.odd?.differenceBytes ?? 0) / MIB).toBeGreaterThan(200);
    expect(others.filter(({ odd }) => odd !== undefined)).toEqual([]);
    for (const row of body.instances) {
      expect(row.values).toHaveLength(7);
      // The last step is over the time in which the instance ran, and so is not lower.
      expect((row.values.at(-1) ?? 0) / MIB).toBeGreaterThan(195);
    }
    const few = await answer({ top: "5" });
    expect(few.body.instances).toHaveLength(5);
    expect(few.body.otherInstances).toBe(7);
    expect(await answer({ version: "8" })).toMatchObject({
      status: 404,
      body: { error: expect.stringMatching(/no process of shop has the version 8/) },
    });
    expect((await answer({ top: "501" })).status).toBe(400);
    expect((await answer({ steps: "301" })).status).toBe(400);
    expect(await answer({ service: "nobody" })).toMatchObject({
      status: 404,
      body: { error: expect.stringMatching(/no service is called nobody/) },
    });
  });
});

describe("the map", () => {
  test("is read by keyboard and pointer, and leads to an instance", async () => {
    const streams = await give(12, 5);
    await opened(12);
    await expect
      .poll(() => words(".heat-legend"))
      .toMatch(/^12 instances 1 odd 0 its limit not running/);
    await heat().focus();
    const status = () => words(".heat [role=status]");
    await page.keyboard.press("ArrowDown");
    await expect.poll(status).toMatch(/^shop-5, .* MiB RSS, .* % of its limit, 0\.98 GiB, odd: \+/);
    await page.keyboard.press("ArrowDown");
    await expect.poll(status).toMatch(/^shop-(?!5,)\d+, .* MiB RSS, 2\d(\.\d)? % of its limit/);
    await page.keyboard.press("Home");
    await expect.poll(status).toMatch(/MiB RSS/);
    await page.keyboard.press("Escape");
    await expect.poll(status).toBe("");
    await expect
      .poll(async () => {
        await point(30, 14);
        return words(".heat-readout");
      })
      .toMatch(/^shop-5 .* version 7 on here$/);
    const box = present(await heat().boundingBox());
    // The odd one is much darker than the row below it.
    const [odd, usual] = [await colourAt(box.width - 60, 14), await colourAt(box.width - 60, 34)];
    expect((usual[1] ?? 0) - (odd[1] ?? 0)).toBeGreaterThan(30);
    await page.mouse.click(...(await point(30, 14)));
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/instance/${streams[4]}`);
    // A pointer that rests there would choose a row, too, and let it go when the page moves.
    await page.mouse.move(0, 0);
    await page.goBack();
    await drawn(12);
    await heat().focus();
    await page.keyboard.press("End");
    await expect.poll(status).toMatch(/^shop-5, /);
    await page.keyboard.press("Enter");
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/instance/${streams[4]}`);
    expect(complaints).toEqual([]);
  });

  test("keeps its choices in the address, and a drag chooses a range", async () => {
    await give(9, 2);
    await opened(9);
    const light = await colourAt(500, 14);
    await chooser(0).selectOption("largest");
    await chooser(1).selectOption("start");
    await expect.poll(() => page.url()).toMatch(/heat=largest.*rows=start/);
    await page.reload();
    await drawn(9);
    await expect.poll(() => chooser(1).inputValue()).toBe("start");
    await expect.poll(() => words(".heat-scale")).toMatch(/57\d MiB$/);
    await page.getByRole("button", { name: /dark/i }).click();
    await expect.poll(() => colourAt(500, 14)).not.toEqual(light);
    const box = present(await heat().boundingBox());
    await page.mouse.move(box.x + 400, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + 600, box.y + 50, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => page.url()).toMatch(/from=\d+&to=\d+/);
    expect(complaints).toEqual([]);
  });

  test("shows hundreds of instances, also on a phone, and no name becomes markup", async () => {
    await give(120, 50, {
      pod: EVIL,
      rss: [
        [0, 200 * MIB],
        [MINUTE, 210 * MIB],
      ],
    });
    await page.setViewportSize({ width: 390, height: 800 });
    await opened(120);
    await heat().focus();
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => words(".heat-readout")).toContain("<script>");
    await expect
      .poll(() => page.evaluate(() => document.documentElement.scrollWidth))
      .toBeLessThanOrEqual(390);
    expect(complaints).toEqual([]);
  });

  test("leaves few instances to lines", async () => {
    await give(7, 2);
    await page.goto(`${server.url}/service?name=shop&chart=instance`);
    await page.waitForSelector("[data-testid=series]");
    await expect.poll(() => heat().count()).toBe(0);
  });
});
