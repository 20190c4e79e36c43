/**
 * Profiles of other profilers, stored as recordings: one stream for each sender (a set of labels and of sample
 * types). From there on they are durable, idempotent and kept like Tidemark's own recordings.
 *
 *     ReceivedProfile ── its sender's stream ── RecordingWriter ── frames ── Ingest.accept (fsync) ── acknowledged
 */

import { createHash } from "node:crypto";
import { itemAt } from "../../model/base/columns.js";
import { RowIndex } from "../../model/base/row_index.js";
import { Turns } from "../../model/base/turns.js";
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { ProfileTablesBuilder } from "../../model/profile/tables_builder.js";
import { KeptFrames } from "../../recording/frames/kept_frames.js";
import { namedBytes, streamName } from "../../recording/sender/stream_name.js";
import { StreamReader } from "../../recording/stream_reader.js";
import { RecordingWriter } from "../../recording/writer.js";
import type { StreamFiles } from "../../store/index.js";
import { type Ingest, NOT_WRITABLE } from "../ingest/ingest.js";
import type { ReceivedProfile } from "./formats/received_profile.js";
import { profileSnapshotOf } from "./sender_profile.js";

/** A stream that is longer or older is ended, and another one begins: retention removes whole streams. */
const MOST_STREAM_BYTES: Bytes = 64 << 20;
const LONGEST_STREAM_MS: Millis = 86_400_000;
/** The description of a sender's stream is shorter: labels are bounded. */
const MOST_META_BYTES: Bytes = 1 << 20;
const USUAL_META_BYTES: Bytes = 4 << 10;
/** Streams of a sender whose profiles are recognized when they are sent again. */
const KEPT_STREAMS = 2;
/** Ids of profiles that are remembered of each sender. */
const MOST_IDS = 20_000;
/** Limit on the ids and times of profiles in memory, over all senders. */
const MOST_KEPT = 3_000_000;
const KEPT_BYTES: Bytes = 40;
/** What a sender takes beside its ids and times, in the same unit, so that many small senders are bounded as well. */
const SENDER_KEPT = 200;
/** An id is kept as the first bits of its hash: as many as a number holds exactly. */
const ID_BITS = 53;
const NO_AGENT = { lost: 0, cpuMs: 0 };
const READ_LIMITS = { frameBytes: 64 << 20, callBytes: 1 << 30 };

/** The state of a sender's newest stream. */
interface OpenSender {
  readonly stream: string;
  readonly sink: KeptFrames;
  readonly writer: RecordingWriter;
  /** The tables of its first profile, until that is stored: from then on, `Ingest` has them. */
  first: ProfileTablesBuilder | null;
  /** Ids (hashed) and times of its profiles. */
  readonly ids: Set<number>;
  readonly times: Set<TimeMs>;
  /** The stacks of its profiles, by the hash of their frames. */
  readonly stacks: RowIndex;
  readonly startedMs: TimeMs;
  usedMs: TimeMs;
}

/** The result of a sender's request. */
export interface SentOutcome {
  readonly status: 200 | 400 | 413 | 503;
  readonly error?: string;
}

export class SenderStreams {
  readonly #ingest: Ingest;
  readonly #files: StreamFiles;
  /** By key of the sender: the names of its newest streams, the newest last. */
  readonly #streams = new Map<string, readonly string[]>();
  readonly #open = new Map<string, OpenSender>();
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(ingest: Ingest, files: StreamFiles) {
    this.#ingest = ingest;
    this.#files = files;
  }

  /** After a start: finds the newest streams of each sender. */
  async recover(): Promise<void> {
    const streams = await this.#files.list();
    const all = await new Turns().map(streams, ({ stream }) => {
      const meta = firstMeta(this.#files, stream);
      const key = meta?.sender?.key;
      return meta && key !== undefined ? [{ stream, key, startedMs: meta.startedMs }] : [];
    });
    for (const { key, stream } of all.flat().sort((a, b) => a.startedMs - b.startedMs)) {
      this.#addStream(key, stream);
    }
  }

  #addStream(key: string, stream: string): void {
    const before = (this.#streams.get(key) ?? []).filter((name) => name !== stream);
    this.#streams.set(key, [...before, stream].slice(-KEPT_STREAMS));
  }

  /** Stores the profiles of one request; those that are known already are left out. */
  async accept(profiles: readonly ReceivedProfile[]): Promise<SentOutcome> {
    for (const profile of profiles) {
      if (profile.figures.length > 0) {
        const outcome = await this.#inTurn(keyOf(profile), (key) => this.#store(key, profile));
        if (outcome.status !== 200) {
          return outcome;
        }
      }
    }
    return { status: 200 };
  }

  async #store(key: string, given: ReceivedProfile): Promise<SentOutcome> {
    let { sender, ids } = await this.#senderOf(key);
    if (ids.has(hashedId(given.id))) {
      return { status: 200 };
    }
    if (sender !== null && this.#isFull(sender, given.timeMs)) {
      await this.#end(sender, given.timeMs);
      sender = null;
    }
    sender ??= this.#begin(key, given, ids);
    const profile = { ...given, timeMs: freeTime(sender.times, given.timeMs) };
    const builder = sender.first ?? (await this.#continued(sender));
    if (builder === null) {
      return { status: 503, error: NOT_WRITABLE };
    }
    const { processes, threads } = builder.tables();
    builder.setProcess(0, { ...itemAt(processes, 0), periodBytes: profile.periodBytes });
    const threadRows = new Map(threads.map(({ name }, row) => [name, row]));
    const snapshot = profileSnapshotOf(profile, builder, threadRows, sender.stacks);
    sender.writer.snapshot(builder.tables(), snapshot, {
      kind: "poll",
      agent: {
        ...NO_AGENT,
        samples: profile.samples.length,
        periodBytes: profile.periodBytes,
      },
      receivedId: profile.id,
    });
    const outcome = await this.#send(sender);
    if (outcome.status === 200) {
      sender.first = null;
      remember(sender, profile);
      this.#addStream(key, sender.stream);
      this.#open.set(key, sender);
    } else {
      // Its frames were not stored, so the tables of its writer no longer match the stream.
      this.#open.delete(key);
    }
    return outcome;
  }

  async #continued({ stream }: OpenSender): Promise<ProfileTablesBuilder | null> {
    const tables = await this.#ingest.tables(stream);
    return tables && new ProfileTablesBuilder(tables);
  }

  async #send({ stream, sink }: OpenSender): Promise<SentOutcome> {
    const offset = this.#files.lengthOf(stream);
    const { status, answer } = await this.#ingest.accept(stream, offset, sink.take());
    return status === 200
      ? { status }
      : { status: status === 409 ? 503 : status, error: answer.error ?? "the profile is refused" };
  }

  #isFull({ stream, startedMs }: OpenSender, timeMs: TimeMs): boolean {
    return (
      this.#files.lengthOf(stream) > MOST_STREAM_BYTES || timeMs - startedMs > LONGEST_STREAM_MS
    );
  }

  async #end(sender: OpenSender, timeMs: TimeMs): Promise<void> {
    const unknown = { exitCode: null, signal: null, maxRssBytes: 0, userMs: 0, systemMs: 0 };
    sender.writer.end({ timeMs, ...unknown });
    await this.#send(sender);
  }

  #begin(key: string, profile: ReceivedProfile, ids: Set<number>): OpenSender {
    const { identity, host, pid, timeMs, source, periodBytes } = profile;
    const sink = new KeptFrames();
    const writer = new RecordingWriter(sink);
    const command = [identity.service];
    const startedMs = timeMs;
    writer.begin({
      tidemarkVersion: "0",
      command,
      pid,
      startedMs,
      host,
      kernel: "",
      runId: key,
      periodBytes,
      keeper: null,
      recorder: { pid: 0, startTicks: 0 },
      identity,
      sender: { source, key },
    });
    const process = { pid, parentPid: 0, command, python: "", startedMs };
    writer.processes(timeMs, [{ ...process, series: 0, profiled: true, endedMs: null }]);
    writer.limits(timeMs, limitsOf(profile));
    const first = new ProfileTablesBuilder();
    first.addProcess({ ...process, periodBytes });
    const stream = streamName(sink.peek());
    const times = new Set<TimeMs>();
    const stacks = new RowIndex();
    return { stream, sink, writer, first, ids, times, stacks, startedMs, usedMs: Date.now() };
  }

  /** The sender's newest stream (null: it has none that is open) and the ids of the profiles in its newest streams, read
   * again from their files if they are not in memory. */
  async #senderOf(key: string): Promise<{ sender: OpenSender | null; ids: Set<number> }> {
    const found = this.#open.get(key);
    if (found !== undefined) {
      found.usedMs = Date.now();
      return { sender: found, ids: found.ids };
    }
    this.#makeRoom();
    const ids = new Set<number>();
    let sender: OpenSender | null = null;
    for (const stream of this.#streams.get(key) ?? []) {
      sender = this.#files.lengthOf(stream) === 0 ? null : await reopened(this.#files, stream, ids);
    }
    if (sender !== null) {
      this.#open.set(key, sender);
    }
    return { sender, ids };
  }

  #makeRoom(): void {
    const kept = ({ ids, times, stacks }: OpenSender) =>
      ids.size + times.size + SENDER_KEPT + stacks.bytes / KEPT_BYTES;
    let left = -MOST_KEPT;
    for (const sender of this.#open.values()) {
      left += kept(sender);
    }
    if (left > 0) {
      const byAge = [...this.#open].sort(([, a], [, b]) => a.usedMs - b.usedMs);
      for (const [key, sender] of byAge) {
        this.#open.delete(key);
        left -= kept(sender);
        if (left < -MOST_KEPT / 10) {
          break;
        }
      }
    }
  }

  #inTurn(key: string, work: (key: string) => Promise<SentOutcome>): Promise<SentOutcome> {
    const before = this.#turns.get(key) ?? Promise.resolve();
    const result = before.catch(() => {}).then(() => work(key));
    const turn = result
      .catch(() => {})
      .finally(() => {
        if (this.#turns.get(key) === turn) {
          this.#turns.delete(key);
        }
      });
    this.#turns.set(key, turn);
    return result;
  }
}

/**
 * Profiles of one process with different types are different gauges, so each set of types counts as a separate sender.
 *
 */
function keyOf({ source, identity, host, pid, figures }: ReceivedProfile): string {
  const content = JSON.stringify([source, identity, host, pid, figures.slice().sort()]);
  return createHash("sha256").update(content).digest("hex").slice(0, 32);
}

/** Two profiles with the same time are both kept: the later one is moved by a millisecond. */
function freeTime(times: ReadonlySet<TimeMs>, timeMs: TimeMs): TimeMs {
  let free = timeMs;
  while (times.has(free)) {
    free += 1;
  }
  return free;
}

function remember(sender: OpenSender, { id, timeMs }: ReceivedProfile): void {
  sender.times.add(timeMs);
  addId(sender.ids, id);
}

function addId(ids: Set<number>, id: string): void {
  ids.add(hashedId(id));
  if (ids.size > MOST_IDS) {
    const [oldest] = ids;
    ids.delete(oldest ?? 0);
  }
}

/** Two ids out of 20,000 have the same one with a probability of 2e-8. */
function hashedId(id: string): number {
  const start = createHash("sha256").update(id).digest().readBigUInt64LE();
  return Number(BigInt.asUintN(ID_BITS, start));
}

function firstMeta(files: StreamFiles, stream: string) {
  try {
    // At a start, this is read of each stream.
    let start = files.read(stream, 0, USUAL_META_BYTES);
    if (namedBytes(start) === 0) {
      start = files.read(stream, 0, MOST_META_BYTES);
    }
    const reader = new StreamReader(stream, READ_LIMITS);
    reader.take(start.subarray(0, namedBytes(start)));
    return reader.meta;
  } catch (error) {
    if (error instanceof TidemarkError) {
      return null;
    }
    throw error;
  }
}

/** Adds the ids of its profiles to `ids`. null: the stream has ended. */
async function reopened(
  files: StreamFiles,
  stream: string,
  ids: Set<number>,
): Promise<OpenSender | null> {
  const reader = new StreamReader(stream, READ_LIMITS);
  const turns = new Turns();
  const times = new Set<TimeMs>();
  let profiles = 0;
  for (const chunk of files.frames(stream, 0)) {
    await turns.next();
    for (const item of reader.take(chunk)) {
      if (item.kind === "end") {
        return null;
      }
      if (item.kind === "profile") {
        profiles += 1;
        addId(ids, item.about.receivedId ?? "");
        times.add(item.about.timeMs);
      }
    }
  }
  if (profiles === 0 || reader.meta === null) {
    return null;
  }
  const sink = new KeptFrames();
  const writer = RecordingWriter.after(sink, reader.tables, profiles);
  const { startedMs } = reader.meta;
  const stacks = new RowIndex();
  const open = { stream, sink, writer, first: null, ids, times, stacks };
  return { ...open, startedMs, usedMs: Date.now() };
}

const SOURCE_NAMES = {
  pyroscope: "a Pyroscope client",
  otlp: "an OTLP sender",
  datadog: "Datadog's profiler",
};

/** What is unknown from profiles of other profilers. */
function limitsOf({ source, figures }: ReceivedProfile): string[] {
  const missing = [
    ...(figures.includes("liveBytes") ? [] : ["live bytes"]),
    ...(figures.includes("liveObjects") ? [] : ["live objects"]),
    ...(figures.includes("allocatedBytes") ? [] : ["allocated bytes"]),
    ...(figures.includes("allocatedObjects") ? [] : ["allocated objects"]),
  ];
  return [
    `These profiles were sent by ${SOURCE_NAMES[source]}: RSS, its parts, native allocations, the age of memory and its holders are unknown.`,
    "Allocated figures cover the time of one profile.",
    ...(missing.length === 0 ? [] : [`The profiles have no ${missing.join(", ")}.`]),
  ];
}
