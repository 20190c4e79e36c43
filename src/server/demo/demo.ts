/** Fills a server's folder with the demo fleet, and keeps its processes running. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatCount, formatDuration } from "../../model/base/numbers.js";
import type { Millis } from "../../model/base/units.js";
import { badUsage, damagedInput } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { streamName } from "../../recording/sender/stream_name.js";
import { openStore, storeFolder } from "../../store/index.js";
import type { Ingest } from "../ingest/ingest.js";
import { DemoRecorder, livesOf } from "./recordings.js";
import { DEMO_SERVICES } from "./services.js";

/** Its presence means that the folder holds nothing but a demo, so that its contents may be removed. */
const MARK = "demo.json";
const NEXT_MS: Millis = 30_000;

/** Empties the folder of an earlier demo. Throws TidemarkError where it holds other data or is in use. */
export async function makeDemoRoom(storeName: string): Promise<void> {
  const folder = storeFolder(storeName);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const contents = readdirSync(folder);
  if (contents.length > 0 && !contents.includes(MARK)) {
    throw badUsage(
      `${folder} holds other data, which the demo would mix with its own`,
      "name a new folder, as in --store duckdb:FOLDER, or leave out --demo",
    );
  }
  writeFileSync(join(folder, MARK), "{}\n");
  // Refused where another server uses the folder.
  const { store } = await openStore(storeName);
  await store.close();
  for (const name of readdirSync(folder).filter((each) => each !== MARK)) {
    rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** A server without the demo may add real data to the folder of one: from then on it is not removed. */
export function keepFromDemo(folder: string): void {
  rmSync(join(folder, MARK), { force: true });
}

/**
 * Sends the recordings of every service to `ingest`, until it is aborted. @returns what ends the processes that still
 * run. Throws TidemarkError.
 */
export async function fillWithDemo(
  ingest: Ingest,
  { say, until }: { readonly say: (line: string) => void; readonly until: AbortSignal },
): Promise<() => void> {
  const nowMs = Date.now();
  const begun = performance.now();
  say(`making the demo: ${DEMO_SERVICES.length} services over 30 days; this takes about a minute`);
  // Verdicts come in the order in which recordings do.
  const lives = DEMO_SERVICES.flatMap((service) => livesOf(service, nowMs)).sort(
    (a, b) => Number(a.end !== null) - Number(b.end !== null),
  );
  const running: Sent[] = [];
  for (const life of lives) {
    if (until.aborted) {
      return () => {};
    }
    const recorder = new DemoRecorder(life);
    const recording = recorder.begin(nowMs);
    const sent = { recorder, stream: streamName(recording), bytes: 0 };
    await send(ingest, sent, recording);
    if (life.end === null) {
      running.push(sent);
    }
  }
  await ingest.flush();
  const took = formatDuration(performance.now() - begun);
  say(`made the histories of ${formatCount(lives.length)} processes in ${took}`);
  say(
    "two services leak: see Verdicts, or tidemark fleet verdicts; one release needs more memory: see Alerts, or tidemark fleet alerts",
  );
  const timer = setInterval(() => {
    for (const sent of running) {
      void send(ingest, sent, sent.recorder.next(Date.now())).catch((error: unknown) => {
        clearInterval(timer);
        say(`the demo has stopped changing: ${reasonOf(error).message}`);
      });
    }
  }, NEXT_MS);
  return () => clearInterval(timer);
}

interface Sent {
  readonly recorder: DemoRecorder;
  readonly stream: string;
  bytes: number;
}

async function send(ingest: Ingest, sent: Sent, frames: Buffer): Promise<void> {
  const offset = sent.bytes;
  sent.bytes += frames.length;
  const { status, answer } = await ingest.accept(sent.stream, offset, frames);
  if (status !== 200) {
    throw damagedInput("the demo", answer.error ?? `the server answers with status ${status}`);
  }
}
