/** Runs the server: opens the store, recovers after a crash, listens, and shuts down in order. */
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { createAdaptorServer } from "@hono/node-server";
import pino from "pino";
import { reportDocument } from "../inspect/recorded/index.js";
import { formatBytes } from "../model/base/numbers.js";
import type { Millis, TimeMs } from "../model/base/units.js";
import { badUsage, nothingThere } from "../model/errors/errors.js";
import { reasonOf } from "../model/errors/reason.js";
import { cannotListen } from "../model/errors/server_errors.js";
import { openRecording } from "../recording/reader.js";
import { backUp, openStore, StreamFiles } from "../store/index.js";
import { ActionBook } from "./actions/action_book.js";
import type { ActionLimits } from "./actions/action_limits.js";
import { Alerting, type AlertSettings, USUAL_ALERTS } from "./alerts/alerting.js";
import { Diagnoses } from "./answers/diagnoses.js";
import { IngestAnswers } from "./answers/ingest.js";
import { type SizeSettings, Sizes } from "./answers/sizes.js";
import { ArtifactFiles, type ArtifactLimits } from "./artifacts/artifact_files.js";
import { takeBackupRequests } from "./control.js";
import { fillWithDemo, keepFromDemo, makeDemoRoom } from "./demo/demo.js";
import { ForecastBook } from "./forecasts/forecast_book.js";
import { buildApp } from "./http/app.js";
import { Changes } from "./http/changes.js";
import { Tokens } from "./http/tokens.js";
import { answerUnreadable, MOST_HEADER_BYTES } from "./http/unreadable.js";
import { Deliveries } from "./ingest/deliveries.js";
import { Ingest } from "./ingest/ingest.js";
import { knownTime } from "./ingest/known_time.js";
import { SteadyClock } from "./ingest/steady_clock.js";
import { followRecordings, type Loaded, loadRecording } from "./load.js";
import { HandedPolicy } from "./requests/handed_policy.js";
import { requestLooks } from "./requests/looks.js";
import { requestRanks } from "./requests/odd_ranks.js";
import { RequestBook } from "./requests/request_book.js";
import { SenderStreams } from "./senders/sender_streams.js";
import { type KeptLimits, keepTidy } from "./tidy.js";
import { Verdicts } from "./verdicts.js";

export interface ServeOptions {
  readonly listen: { readonly host: string; readonly port: number };
  /** "duckdb:FOLDER" or "clickhouse://USER:PASSWORD@HOST:PORT/DATABASE" */
  readonly store: string;
  /** With ClickHouse: the folder for recordings and other files; undefined: one in `usual`. */
  readonly files?: string | undefined;
  readonly usual: string;
  /** Values that each label of a service may have; undefined: the usual number. */
  readonly labelValues?: number;
  /** Fill the store, which must be new, with a made-up fleet. */
  readonly demo: boolean;
  /** Recordings to load before listening. `follow`: also what is added to them afterwards. */
  readonly load: readonly string[];
  readonly follow?: boolean;
  /** null if no token is needed, which is allowed only on loopback. */
  readonly tokenFile: string | null;
  /** Folder of the pages. */
  readonly pages: string;
  readonly limits: ServeLimits;
  /** Called with a function that changes the limits of the running server. */
  readonly onReload: (apply: (limits: ServeLimits, tokenFile: string | null) => void) => void;
  /** Lines for people, before and after. */
  readonly say: (line: string) => void;
  /** Ends the server. */
  readonly until: AbortSignal;
  /** Called once it listens. */
  readonly listening: (about: {
    readonly url: string;
    readonly folder: string;
    /** Of the loaded recordings. */
    readonly streams: readonly string[];
  }) => void;
}

/** What can change while the server runs. */
export interface ServeLimits extends KeptLimits {
  /** "info": a line for each request. */
  readonly logLevel: "info" | "warn";
  /** null: the usual rules, and no receivers. */
  readonly alerts: AlertSettings | null;
  readonly actions: ActionLimits;
  readonly artifacts: ArtifactLimits;
  readonly sizes: SizeSettings;
  /** Whether the diagnosis may ask collectors for the agent. */
  readonly asksForAgents: boolean;
  /** File with the policy that collectors get; null: none. */
  readonly handedPolicy: string | null;
}

const LOOPBACK = /^(127(\.\d{1,3}){3}|::1|localhost)$/;
const LOOPBACK_NAMES = new Set(["localhost", "127.0.0.1", "[::1]"]);
/** Limit for clients that send a request slowly or not at all. */
const REQUEST_MS: Millis = 60_000;
const HEADERS_MS: Millis = 15_000;
/** Longer than senders and proxies wait between two requests, so that it is they who close a connection. */
const IDLE_MS: Millis = 75_000;

/** Runs until `until` is aborted. Throws TidemarkError if it cannot start. */
export async function serve(options: ServeOptions): Promise<void> {
  const { listen, say } = options;
  const isLoopback = LOOPBACK.test(listen.host);
  if (!isLoopback && options.tokenFile === null) {
    throw badUsage(
      `${listen.host} is not a loopback address, and no token protects the server`,
      "write a file with lines such as `ingest TOKEN` and `read TOKEN`, and name it with --token-file",
    );
  }
  let { limits } = options;
  const tokens = new Tokens(options.tokenFile);
  const log = pino({ level: limits.logLevel, base: null }, pino.destination({ fd: 2, sync: true }));
  const auditLog = log.child({ audit: true }, { level: "info" });
  const warn = (text: string) => log.warn(text);
  if (options.demo) {
    await makeDemoRoom(options.store);
  }
  // Before the store is opened: recovery and diagnoses of a server that cannot listen would be work for nothing.
  await checkAddress(listen);
  const { store, folder } = await openStore(options.store, {
    ...{ files: options.files, usual: options.usual },
    ...(options.labelValues === undefined ? {} : { labelValues: options.labelValues }),
  });
  if (!options.demo) {
    keepFromDemo(folder);
  }
  try {
    const files = new StreamFiles(join(folder, "streams"));
    const changes = new Changes();
    const deliveries = new Deliveries();
    const verdicts = new Verdicts(store, files, warn);
    const clock = new SteadyClock(
      warn,
      knownTime(folder) ??
        (await files.list()).reduce<TimeMs | null>(
          (last, { changedMs }) => Math.max(last ?? 0, changedMs),
          null,
        ),
    );
    const ingest = new Ingest({
      store,
      files,
      clock,
      oldestMs: () => clock.earliestMs() - limits.keepMs,
      warn,
      received: (stream, bytes, error) => deliveries.received(stream, bytes, error, Date.now()),
      written(parts) {
        verdicts.written(parts);
        changes.changed();
      },
    });
    for (const line of await ingest.recover()) {
      say(line);
    }
    const senders = new SenderStreams(ingest, files);
    await senders.recover();
    const endDemo = options.demo ? await fillWithDemo(ingest, options) : () => {};
    const loaded = new Map<string, Loaded>();
    for (const path of options.load) {
      const recording = await loadRecording(path, ingest);
      loaded.set(path, recording);
      say(`loaded ${path} as stream ${recording.stream}`);
      if (recording.otherBytes > 0) {
        say(
          `${formatBytes(recording.otherBytes)} of ${path} could not be read: it is damaged from byte ${recording.bytes} on, or still being written`,
        );
      }
    }
    await ingest.flush();
    const forecasts = new ForecastBook(folder, warn);
    const diagnoses = new Diagnoses(store, (service) => forecasts.recordOf(service), warn);
    const sizes = new Sizes(store, diagnoses, () => limits.sizes, warn);
    const artifacts = new ArtifactFiles(folder, () => limits.artifacts);
    const requests = new RequestBook(folder, warn);
    let url = "";
    const alerting = new Alerting({
      ...{ store, diagnoses, forecasts, folder, warn },
      settings: () => limits.alerts ?? USUAL_ALERTS,
      url: () => url,
      changed: () => changes.changed(),
      evaluated: async (nowMs) => {
        if (limits.asksForAgents) {
          const parts = {
            store,
            diagnoses,
            book: requests,
            info: (text: string) => log.info(text),
          };
          const failed = (error: unknown) => {
            if (!options.until.aborted) {
              warn(`collectors could not be asked: ${reasonOf(error).message}`);
            }
          };
          const changed = () => changes.changed();
          await requestLooks({ ...parts, changed }, nowMs).catch(failed);
          await requestRanks({ ...parts, changed }, nowMs).catch(failed);
        }
      },
    });
    const handedPolicy = new HandedPolicy(warn);
    const app = buildApp({
      store,
      diagnoses,
      sizes,
      alerting,
      forecasts,
      deliveries,
      ingestAnswers: new IngestAnswers({
        ...{ store, files, deliveries },
        retention: () => limits,
      }),
      artifacts,
      recordings: files,
      reportOfFile,
      actions: new ActionBook(folder, warn),
      actionLimits: () => limits.actions,
      requests,
      handedPolicy: () => handedPolicy.text(limits.handedPolicy),
      ingest,
      senders,
      tokens,
      changes,
      hosts:
        isLoopback && options.tokenFile === null ? new Set([...LOOPBACK_NAMES, listen.host]) : null,
      pages: options.pages,
      report: (stream) => reportOf(files, stream),
      log: (line) => log.info(line),
      // Whatever the level of the log is.
      audit: (line) => auditLog.info(line),
      fail(error) {
        // What the end of the server interrupts has nobody left to answer to.
        if (!options.until.aborted) {
          log.error({ err: error }, "a request failed");
        }
      },
    });
    const server = createAdaptorServer({
      fetch: app.fetch,
      serverOptions: { maxHeaderSize: MOST_HEADER_BYTES },
    }) as Server;
    answerUnreadable(server);
    server.requestTimeout = REQUEST_MS;
    server.headersTimeout = HEADERS_MS;
    server.keepAliveTimeout = IDLE_MS;
    const address = await startListening(server, listen);
    const retaining = keepTidy({ store, files, ingest, artifacts, clock, folder }, () => limits, {
      warn,
      info: (text) => log.info(text),
    });
    const endControl = await takeBackupRequests(
      folder,
      async (target) => {
        await ingest.flush();
        return backUp({ store, files, source: folder }, target);
      },
      warn,
    );
    options.onReload((changed, tokenFile) => {
      tokens.reload(tokenFile);
      limits = changed;
      log.level = changed.logLevel;
    });
    url = `http://${address}`;
    alerting.start();
    const endFollowing =
      options.follow === true ? followRecordings(loaded, ingest, warn) : async () => {};
    const streams = [...loaded.values()].map(({ stream }) => stream);
    options.listening({ url, folder, streams });
    await aborted(options.until);
    await endFollowing();
    clearInterval(retaining);
    endDemo();
    await endControl();
    await ingest.stop();
    changes.close();
    await closed(server);
    requests.close();
    diagnoses.stop();
    await alerting.stop();
    await verdicts.stop();
  } finally {
    await store.close();
  }
}

async function reportOf(files: StreamFiles, stream: string): Promise<object> {
  if (files.lengthOf(stream) === 0) {
    throw nothingThere(
      "the recording of this instance is not kept any more",
      "its figures are part of its service",
    );
  }
  return reportOfFile(files.pathOf(stream), stream);
}

async function reportOfFile(path: string, title: string): Promise<object> {
  const recording = openRecording(path, () => true);
  const report = await reportDocument(
    recording,
    () => new Promise((resume) => setImmediate(resume)),
    { source: false },
  );
  return { ...report, title };
}

/** Throws TidemarkError if the address cannot be used. */
async function checkAddress(listen: ServeOptions["listen"]): Promise<void> {
  const server = createServer();
  await startListening(server, listen);
  await new Promise((resolve) => server.close(resolve));
}

/** @returns the address with its port. */
function startListening(server: Server, { host, port }: ServeOptions["listen"]): Promise<string> {
  const shown = host.includes(":") ? `[${host}]` : host;
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(cannotListen(`${shown}:${port}`, error.code ?? "", error.message));
    });
    server.listen(port, host, () => {
      const address = server.address();
      const actual = typeof address === "object" && address !== null ? address.port : port;
      resolve(`${shown}:${actual}`);
    });
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
    }
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

const FAREWELL_MS: Millis = 3_000;

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), FAREWELL_MS).unref();
  });
}
