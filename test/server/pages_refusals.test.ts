/** A page does not repeat a request that the server has refused, because it would be refused again. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { SERVICE_PATH, SERVICES_PATH } from "../../src/model/wire/services.js";
import { withServedPage } from "./fleet_page.js";
import type { RunningServer } from "./running_server.js";

let server: RunningServer;
let page: Page;
withServedPage((served) => {
  ({ server, page } = served);
});

/** Requests of the page for this path, from now on. */
function requestsFor(path: string): () => number {
  let count = 0;
  page.on("request", (request) => {
    count += new URL(request.url()).pathname === path ? 1 : 0;
  });
  return () => count;
}

const answered = (status: number) =>
  page.route(`**${SERVICES_PATH}?*`, (route) =>
    route.fulfill({ status, json: { error: `TM-E002 refused with ${status}` } }),
  );

test.each([
  ["/service?name=nope", SERVICE_PATH, "no service is called nope"],
  ["/?from=1&to=9000000000000", SERVICES_PATH, "the parameter to is not a whole number from 0 to"],
  ["/?from=1&to=99000000000", SERVICES_PATH, "the window is longer than two years"],
])("a page of %s shows the refusal after one request", async (address, path, line) => {
  const requests = requestsFor(path);
  await page.goto(server.url + address);
  await expect.poll(() => page.locator("main").innerText()).toContain(line);
  expect(requests()).toBe(1);
});

test.each([400, 403, 404, 409, 413, 415])("status %i ends the request", async (status) => {
  await answered(status);
  const requests = requestsFor(SERVICES_PATH);
  await page.goto(server.url);
  await expect.poll(() => page.getByRole("alert").innerText()).toBe(`refused with ${status}`);
  expect(requests()).toBe(1);
});

test("status 401 asks for a token after one request", async () => {
  await answered(401);
  const requests = requestsFor(SERVICES_PATH);
  await page.goto(server.url);
  await page.getByLabel("This server requires a token with the scope read.").waitFor();
  expect(requests()).toBe(1);
});

test.each([500, 503])("status %i may pass, so the page requests it again", async (status) => {
  await answered(status);
  const requests = requestsFor(SERVICES_PATH);
  await page.goto(server.url);
  await expect.poll(() => page.getByRole("alert").innerText()).toBe(`refused with ${status}`);
  expect(requests()).toBeGreaterThan(1);
});
