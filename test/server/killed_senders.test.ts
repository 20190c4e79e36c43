/** SIGKILL of the server while profilers send and clients query: acknowledged profiles are stored exactly once. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, expect, test } from "vitest";
import { freeAddress } from "../../src/model/base/free_port.fixture.js";
import { removeScratch, scratch } from "../run.js";
import { pprofOf, pushMessage } from "./profiles.js";
import { ask, type RunningServer, startServer } from "./running_server.js";

afterAll(removeScratch);

const KILLS = 3;
const PROFILES = 40;
const SECOND = 1000;
const START = Date.now() - 2 * PROFILES * SECOND;
const SENDERS = ["web-1", "web-2"];

let server: RunningServer;
afterEach(() => server.kill());

test("profiles are stored once each", async () => {
  const folder = scratch();
  const listen = await freeAddress();
  server = await startServer(folder, { listen });
  let isOver = false;
  /** Repeats a request until it is answered; a killed server does not answer. */
  const answered = async (path: string, init: RequestInit = {}) => {
    for (;;) {
      try {
        return await ask(`${server.url}${path}`, init);
      } catch (error) {
        if (!(error instanceof TypeError)) {
          throw error;
        }
        await sleep(50);
      }
    }
  };
  const send = async (pod: string) => {
    for (let at = 0; at < PROFILES; at++) {
      const timeMs = START + at * SECOND;
      const pprof = pprofOf(
        { alloc_space: 100, inuse_space: 1000 + at },
        { timeMs, name: `f${at}` },
      );
      const body = new Uint8Array(
        pushMessage({ service_name: "shop", pod }, pprof, `${pod} ${at}`),
      );
      const headers = { "content-type": "application/proto" };
      const path = "/push.v1.PusherService/Push";
      for (let status = 0; status !== 200; await sleep(20)) {
        ({ status } = await answered(path, { method: "POST", headers, body }));
        expect([200, 503]).toContain(status);
      }
    }
  };
  const selector = encodeURIComponent('{service_name="shop"}');
  const window = `from=${START - 1}&to=${START + PROFILES * SECOND}`;
  const query = async () => {
    while (!isOver) {
      for (const path of [
        `diff?left=${selector}&right=${selector}&${window}`,
        `growing?service=shop&${window}`,
      ]) {
        expect((await answered(`/api/v1/${path}`)).status).toBe(200);
      }
      await sleep(200);
    }
  };
  const sending = Promise.all(SENDERS.map(send)).finally(() => {
    isOver = true;
  });
  const querying = query();
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(500 + 300 * kill);
    await server.kill();
    server = await startServer(folder, { listen });
  }
  await Promise.all([sending, querying]);
  await server.stop();
  server = await startServer(folder);
  const { body } = await ask(`${server.url}/querier.v1.QuerierService/SelectSeries`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      profileTypeID: "memory:alloc_space:bytes:space:bytes",
      labelSelector: "{}",
      groupBy: ["pod"],
      start: String(START - 1),
      end: String(START + PROFILES * SECOND),
      step: 3600,
    }),
  });
  const { series } = body as { series: { points: { value: number }[] }[] };
  expect(series.map(({ points }) => points[0]?.value)).toEqual(SENDERS.map(() => PROFILES * 100));
});
