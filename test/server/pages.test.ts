/** The server's pages in a real browser: what they show, that they update, and that no name becomes markup. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { streamName } from "../../src/recording/sender/stream_name.js";
import { type StreamPlan, streamBytes } from "../../src/recording/streams.fixture.js";
import { withServedPage } from "./fleet_page.js";
import { post, type RunningServer } from "./running_server.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const MIB = 2 ** 20;
const START = Date.now() - 20 * MINUTE;
const EVIL = `"><img src=x onerror="throw 1"><script>throw 2</script>`;

let server: RunningServer;
let page: Page;
let complaints: string[];

withServedPage((served) => {
  ({ server, page, complaints } = served);
});

async function give(
  plan: Partial<StreamPlan> & Pick<StreamPlan, "service" | "pid">,
): Promise<string> {
  const bytes = streamBytes({
    startedMs: START,
    rss: Array.from(
      { length: 20 },
      (_, n) => [n * MINUTE, (100 + 10 * n * plan.pid) * MIB] as const,
    ),
    profiles: Array.from(
      { length: 4 },
      (_, n) =>
        [
          n * 5 * MINUTE,
          `main;load ${(10 + n) * MIB} variance=1\nmain;handle;remember ${50 * n * MIB} variance=1`,
        ] as const,
    ),
    ...plan,
  });
  const { status } = await post(server.url, bytes);
  expect(status).toBe(200);
  return streamName(bytes);
}

const words = async (selector: string) =>
  (await page.locator(selector).innerText()).replace(/\s+/g, " ").trim();
const drawn = () => page.waitForSelector("[data-testid=flame][data-frames]");

describe("the pages", () => {
  test("name the command that fills them, and update without a reload", async () => {
    await page.goto(server.url);
    await expect.poll(() => words("main")).toContain("tidemark run --to");
    await give({ service: "checkout", version: "41", pid: 1 });
    await expect.poll(() => words("main")).toContain("checkout");
    expect(complaints).toEqual([]);
  });

  test("lead from the services to a service and to an instance", async () => {
    await give({ service: "checkout", version: "41", pid: 1 });
    const stream = await give({ service: "checkout", version: "42", pid: 2 });
    await give({ service: "search", pid: 3 });
    await page.goto(server.url);
    await page.getByRole("row").filter({ hasText: "search" }).waitFor();
    // The content security policy forbids styles in the page.
    expect(await page.locator("style").count()).toBe(0);
    await page.getByRole("searchbox").fill("check");
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
    await expect.poll(() => page.url()).toContain("q=check");
    await page.getByRole("row").filter({ hasText: "checkout" }).click();
    await drawn();
    await expect.poll(() => page.url()).toContain("/service?name=checkout");
    await expect
      .poll(() => words("[aria-label='Memory over time']"))
      .toMatch(/42 480 MiB.*41 290 MiB/);
    await page.getByRole("button", { name: "By instance" }).click();
    await expect.poll(() => words("[aria-label='Memory over time']")).toContain(stream.slice(0, 8));
    await page.getByRole("tab", { name: "Sites" }).click();
    await expect.poll(() => words("[aria-label='Profile']")).toContain("remember");
    // The address contains the choices, so anyone who opens it sees the same.
    await page.reload();
    await expect.poll(() => words("[aria-label='Memory over time']")).toContain(stream.slice(0, 8));
    await page
      .getByRole("row")
      .filter({ hasText: stream.slice(0, 8) })
      .click();
    await drawn();
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/instance/${stream}`);
    await expect.poll(() => words("header")).toContain("Peak RSS");
    await page.getByRole("link", { name: "checkout" }).click();
    await expect.poll(() => words("[aria-label='Summary']")).toContain("Running 2");
    expect(complaints).toEqual([]);
  });

  test("of names that are unknown keep their answer, with a link to the services", async () => {
    await give({ service: "checkout", pid: 1 });
    for (const [address, text] of [
      ["/service?name=nope", "no service is called nope"],
      ["/instance/0123456789abcdef0123456789abcdef", "no instance has this name"],
    ] as const) {
      await page.goto(`${server.url}${address}`);
      const alert = page.getByRole("alert");
      await expect.poll(() => words("main")).toContain(text);
      expect(await words("main")).not.toContain("tidemark fleet");
      // The pages ask again whenever the server's data changes.
      await alert.evaluate((element) => {
        new MutationObserver(() => {
          document.title = "changed";
        }).observe(element.parentElement as Element, { childList: true, subtree: true });
      });
      const asksAgain = page.waitForResponse((response) => response.status() === 404);
      await give({ service: "checkout", pid: 2 });
      await asksAgain;
      await page.waitForTimeout(500);
      expect(await page.title()).not.toBe("changed");
      await alert.getByRole("link", { name: "All services" }).click();
      await page.getByRole("row").filter({ hasText: "checkout" }).waitFor();
    }
  });

  test("show GPU memory, and kinds of pages where there is no ledger", async () => {
    const steady = (bytes: number) =>
      Array.from({ length: 20 }, (_, n) => [n * MINUTE, bytes] as const);
    await give({
      ...{ service: "train", version: "3", pid: 1 },
      figures: {
        anonRssBytes: steady(70 * MIB),
        fileRssBytes: steady(20 * MIB),
        deviceBytes: steady(9 * 1024 * MIB),
      },
    });
    await give({ service: "web", pid: 2 });
    const chart = () => words("[aria-label='Memory over time']");
    await page.goto(`${server.url}/service?name=train`);
    await page.getByRole("button", { name: "By part of RSS" }).click();
    await expect.poll(chart).toMatch(/anonymous 70.0 MiB files 20.0 MiB/);
    await page.getByRole("button", { name: "GPU memory" }).click();
    await expect.poll(chart).toContain("3 9.00 GiB");
    await page.goto(`${server.url}/service?name=web&chart=devices`);
    await expect.poll(chart).toContain("tidemark watch reads it from nvidia-smi");
    expect(complaints).toEqual([]);
  });

  test("show what grows, and what differs between versions, times and instances", async () => {
    await give({ service: "checkout", version: "41", pid: 1 });
    const stream = await give({
      service: "checkout",
      version: "42",
      pid: 2,
      startedMs: START + MINUTE,
      profiles: Array.from(
        { length: 4 },
        (_, n) => [n * 5 * MINUTE, `main;load ${40 * MIB} variance=1`] as const,
      ),
    });
    const profile = "[aria-label='Profile']";
    await page.goto(server.url);
    await page.getByRole("row").filter({ hasText: "checkout" }).click();
    await drawn();
    await page.getByRole("tab", { name: "Growing" }).click();
    await expect.poll(() => words(profile)).toMatch(/live in the first quarter/);
    const growing = page.getByRole("grid", { name: "Growing stacks" }).getByRole("row");
    await expect.poll(() => growing.nth(1).innerText()).toContain("remember");
    await growing.nth(1).click();
    await expect
      .poll(() => words("ol[aria-label^='Stack']"))
      .toBe("remember app.py:1 handle app.py:1 main app.py:1");

    await page.getByRole("tab", { name: "Endpoints" }).click();
    await expect.poll(() => words(profile)).toContain("0 B live in endpoints, ");

    await page.getByRole("tab", { name: "Compare" }).click();
    await expect
      .poll(() => words(profile))
      .toMatch(/for each instance: 40\.0 MiB in 42 \(1 instance\)/);
    const differences = page.getByRole("grid", { name: "Differences" }).getByRole("row");
    await expect.poll(() => differences.last().innerText()).toMatch(/^−[\d.]+ MiB/);
    await expect.poll(() => differences.last().innerText()).toContain("remember");
    // Anyone who opens the address sees the same comparison.
    await page.getByRole("button", { name: "One instance" }).click();
    await page.getByLabel("Compared with all others:").selectOption(stream);
    await expect.poll(() => words(profile)).toContain(`40.0 MiB in ${stream.slice(0, 8)}`);
    await page.reload();
    await expect.poll(() => words(profile)).toContain(`40.0 MiB in ${stream.slice(0, 8)}`);
    await page.getByRole("button", { name: "Earlier" }).click();
    await expect.poll(() => words(profile)).toMatch(/No process .* has a profile in its window/);
    expect(complaints).toEqual([]);
  });

  test("show memory by endpoint, and the flame graph of one", async () => {
    const lib = "/venv/lib/python3.12/site-packages";
    const route = `run@${lib}/uvicorn/server.py:6;run_endpoint_function@${lib}/fastapi/routing.py:2`;
    await give({
      service: "checkout",
      pid: 1,
      profiles: Array.from(
        { length: 4 },
        (_, n) =>
          [
            n * 5 * MINUTE,
            `${route};show@/srv/cart.py:7 ${30 * MIB} variance=1\nload ${10 * MIB} variance=1`,
          ] as const,
      ),
    });
    await page.goto(server.url);
    await page.getByRole("row").filter({ hasText: "checkout" }).click();
    await drawn();
    await page.getByRole("tab", { name: "Endpoints" }).click();
    const profile = "[aria-label='Profile']";
    await expect
      .poll(() => words(profile))
      .toContain("30.0 MiB live in endpoints, 10.0 MiB outside");
    await page.getByRole("grid", { name: "Endpoints" }).getByRole("row").last().click();
    await drawn();
    await expect
      .poll(() => new URL(page.url()).searchParams.get("endpoint"))
      .toBe("show /srv/cart.py");
    await page.getByRole("tab", { name: "Sites" }).click();
    await expect.poll(() => words(profile)).toContain("show");
    await expect.poll(() => words(profile)).not.toContain("load");
    await page.getByRole("button", { name: "show ✕" }).click();
    await expect.poll(() => words(profile)).toContain("load");
    expect(complaints).toEqual([]);
  });

  test("list the verdicts of all instances", async () => {
    const stream = await give({ service: "checkout", version: "41", pid: 1 });
    await page.goto(`${server.url}/verdicts`);
    await expect.poll(() => words("section[aria-label='Verdicts']")).toMatch(/checkout 41 /);
    await page.getByRole("searchbox").fill("nothing is called this");
    await expect.poll(() => words("main")).toContain("No verdict matches the search.");
    await page.getByRole("searchbox").fill("CHECK");
    await page.getByRole("row").last().click();
    await page.waitForURL(`${server.url}/instance/${stream}`);
    await page.goto(`${server.url}/verdicts?since=6h`);
    await page.getByRole("link", { name: "Services" }).click();
    await page.waitForURL(`${server.url}/?since=6h`);
    expect(complaints).toEqual([]);
  });

  test("list the services that leak: version, growth, instances, line", async () => {
    const hours = Array.from({ length: 72 }, (_, hour) => hour);
    for (const pid of [1, 2]) {
      await give({
        ...{ service: "billing", version: "7", pid, host: `node-${pid}` },
        startedMs: Date.now() - 71 * HOUR,
        rss: hours.flatMap((hour) =>
          [0, 20, 40].flatMap((minute) => {
            const afterMs = hour * HOUR + minute * MINUTE;
            return afterMs > 71 * HOUR
              ? []
              : [
                  [
                    afterMs,
                    (100 + 2 * (afterMs / HOUR) + ((hour + minute) % 3) / 10) * MIB,
                  ] as const,
                ];
          }),
        ),
        profiles: hours.map(
          (hour) =>
            [hour * HOUR, `main;handle;remember ${(1 + 2 * hour) * MIB} variance=1`] as const,
        ),
      });
    }
    await page.goto(`${server.url}/verdicts`);
    await expect
      .poll(() => words("section[aria-label='Services that leak']"))
      .toMatch(
        /1 of 1 leak .*billing 7 \+2\.0\d MiB\/h (?:\(.*\) )?2 of 2 no limit remember \(app\.py:1\)/,
      );
    await page.getByRole("grid", { name: "Diagnoses" }).getByRole("row").last().click();
    await page.waitForURL(/service\?name=billing/);
    expect(complaints).toEqual([]);
  });

  test("show the limits that services need, and what they would save", async () => {
    const hours = Array.from({ length: 60 }, (_, hour) => hour * HOUR);
    await give({
      ...{ service: "mailer", version: "3", pid: 5, startedMs: Date.now() - 59 * HOUR - MINUTE },
      rss: hours.map((afterMs) => [afterMs, 100 * MIB] as const),
      figures: { cgroupLimitBytes: [[hours.at(-1) ?? 0, 1024 * MIB]] },
    });
    await give({
      ...{ service: "printer", pid: 6, startedMs: Date.now() - 59 * HOUR - MINUTE },
      rss: hours.map((afterMs) => [afterMs, 100 * MIB] as const),
    });
    await page.goto(`${server.url}/sizes`);
    const bars = (service: string) =>
      page.getByRole("row").filter({ hasText: service }).locator(".size-bar").count();
    await expect.poll(() => bars("mailer")).toBe(1);
    await page.getByRole("row").filter({ hasText: "printer" }).waitFor();
    expect(await bars("printer")).toBe(0);
    await page.getByRole("searchbox").fill("mailer");
    await expect
      .poll(() => words("section[aria-label='Sizes']"))
      .toMatch(/mailer 1 100 MiB 1\.00 GiB 128 MiB 112 MiB 896 MiB can be lower It was observed/);
    await page.getByRole("grid", { name: "Sizes" }).getByRole("row").last().click();
    await page.waitForURL(/service\?name=mailer/);
    expect(complaints).toEqual([]);
  });

  test("show names from outside as text", async () => {
    await give({
      service: EVIL,
      version: EVIL,
      pid: 1,
      profiles: [[0, `main;${EVIL.replaceAll(" ", "_")} 1000000 variance=1`]],
    });
    await page.goto(server.url);
    await page.getByRole("row").filter({ hasText: "onerror" }).click();
    await drawn();
    await expect.poll(() => words("[aria-label='Path']")).toContain(EVIL);
    await page.getByRole("row").last().click();
    await drawn();
    expect(await page.locator("img, main script").count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test("fit a phone, and can be dark", async () => {
    await give({ service: "checkout", pid: 1 });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(server.url);
    await page.getByRole("row").filter({ hasText: "checkout" }).waitFor();
    for (const [path, table] of [
      ["/", "Services"],
      ["/verdicts", "Verdicts"],
      ["/verdicts", "Diagnoses"],
      ["/service?name=checkout", "Instances"],
      ["/service?name=checkout&view=growing", "Growing stacks"],
    ] as const) {
      await page.goto(`${server.url}${path}`);
      const grid = page.getByRole("grid", { name: table });
      await grid.waitFor();
      await expect
        .poll(() => page.evaluate(() => document.documentElement.scrollWidth - innerWidth))
        .toBeLessThanOrEqual(0);
      const cut = (head: Element) => head.scrollWidth - head.clientWidth;
      expect([table, await grid.locator(".table-head").evaluate(cut)]).toEqual([table, 0]);
    }
    await page.getByRole("button", { name: "Dark colours" }).click();
    await expect.poll(() => page.locator("html").getAttribute("data-theme")).toBe("dark");
    expect(complaints).toEqual([]);
  });
});
