/** A page in a real browser, and what goes wrong on it. */
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { launchBrowser } from "../browser.js";
import { removeScratch, scratch } from "../run.js";
import { type RunningServer, startServer } from "./running_server.js";

export interface WatchedPage {
  readonly page: Page;
  /** Errors and warnings on the page, answers with an error, and requests to anything but its server. */
  readonly complaints: string[];
}

export async function watchedPage(browser: Browser, serverUrl: string): Promise<WatchedPage> {
  const page = await browser.newPage({
    reducedMotion: "reduce",
    viewport: { width: 1280, height: 900 },
  });
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) {
      complaints.push(message.text());
    }
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("response", (response) => {
    if (response.status() >= 400) {
      const at = complaints.push(`${response.status()} ${response.url()}`) - 1;
      // The server's own words follow when they have arrived.
      response.text().then(
        (text) => {
          complaints[at] += ` ${text.slice(0, 400)}`;
        },
        () => {},
      );
    }
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(serverUrl)) {
      complaints.push(request.url());
    }
  });
  return { page, complaints };
}

export interface ServedPage extends WatchedPage {
  readonly server: RunningServer;
}

/** For each test of a file: a server of its own, and a page for it. `options`: of the server, asked for before each test. */
export function withServedPage(
  open: (served: ServedPage) => void,
  options: () => readonly string[] = () => [],
): void {
  let browser: Browser;
  let served: ServedPage;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser.close();
    removeScratch();
  });
  beforeEach(async () => {
    const server = await startServer(scratch(), { options: [...options()] });
    served = { server, ...(await watchedPage(browser, server.url)) };
    open(served);
  });
  afterEach(async () => {
    await served.page.close();
    await served.server.kill();
  });
}
