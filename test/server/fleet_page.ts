/** A page in a real browser, and what goes wrong on it. */
import type { Browser, Page } from "playwright-core";

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
      complaints.push(`${response.status()} ${response.url()}`);
    }
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(serverUrl)) {
      complaints.push(request.url());
    }
  });
  return { page, complaints };
}
