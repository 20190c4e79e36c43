/**
 * Requests of people to collectors: bounded in number and time, kept in `requests.json`, so that a restart of the server
 * loses none. Nothing here starts anything: a collector obeys within its own policy. Answers of collectors are written
 * together, because each host repeats its own every 10 seconds.
 */
import { randomUUID } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatWallClock } from "../../model/base/numbers.js";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type {
  RequestedProgramJson,
  RequestJson,
  RequestsJson,
} from "../../model/documents/request_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { isWithin, type Limit, limitText } from "../../model/settings/limit.js";
import {
  type CollectorCall,
  MOST_CAPTURE_REQUESTS,
  MOST_NAMED_REQUESTS,
  MOST_OPEN_REQUESTS,
} from "../../model/wire/requests.js";

const NAME = "requests.json";
const HOUR: Millis = 3_600_000;
const SERVICE_LIMIT: Limit = { count: 6, perMs: HOUR };
const FLEET_LIMIT: Limit = { count: 60, perMs: HOUR };
/** Newest requests that stay in the list. */
const MOST_KEPT = 200;
/** Hosts that answer one request, and those that stay when it has ended: with programs first. */
const MOST_HOSTS = 1_000;
const MOST_ENDED_HOSTS = 20;
const LONGEST_WHY = 500;
/** A collector asks every 10 seconds: what it did about a request arrives this much later at most. */
const LATE_MS: Millis = 30_000;
/** Answers wait this long for others before they are written. */
const GATHER_MS: Millis = 5_000;

interface Wanted {
  readonly service: string;
  readonly forMs: Millis;
  readonly by?: string | undefined;
  /** Left out: all of the service. */
  readonly programs?: RequestedProgramJson[];
  /** Left out: the agent is requested. */
  readonly captures?: NonNullable<RequestJson["captures"]>;
}

/** Each kind has limits of its own, and holds up no other: only those that name nothing come from people. */
const MOST_OPEN = {
  people: MOST_OPEN_REQUESTS,
  named: MOST_NAMED_REQUESTS,
  captures: MOST_CAPTURE_REQUESTS,
} as const;

function kindOf({
  programs,
  captures,
}: Pick<RequestJson, "programs" | "captures">): keyof typeof MOST_OPEN {
  return captures !== undefined ? "captures" : programs !== undefined ? "named" : "people";
}

export class RequestBook {
  readonly #path: string;
  readonly #warn: (text: string) => void;
  /** Oldest first. */
  #requests: RequestJson[];
  /** Set while answers wait to be written. */
  #timer: NodeJS.Timeout | null = null;

  constructor(folder: string, warn: (text: string) => void) {
    this.#path = join(folder, NAME);
    this.#warn = warn;
    this.#requests = this.#read();
  }

  /** The request, or why it is refused. */
  add(wanted: Wanted, nowMs: TimeMs): RequestJson | string {
    const { service, forMs, by = "", programs, captures } = wanted;
    const kind = kindOf({ ...(programs && { programs }), ...(captures && { captures }) });
    const ofKind = this.#requests.filter((request) => kindOf(request) === kind);
    const open = ofKind.filter(({ untilMs }) => nowMs < untilMs);
    const ofService = ofKind.filter((request) => request.service === service);
    const until = open.find((request) => request.service === service)?.untilMs;
    if (until !== undefined) {
      return `a profile of ${service} is already requested until ${formatWallClock(until)}`;
    }
    const most = MOST_OPEN[kind];
    if (open.length >= most) {
      return `${most} requests are open, and no more are accepted`;
    }
    const times = (all: readonly RequestJson[]) => all.map(({ timeMs }) => timeMs);
    if (!isWithin(SERVICE_LIMIT, times(ofService), nowMs)) {
      return `the limit ${limitText(SERVICE_LIMIT)} of a service is reached`;
    }
    if (!isWithin(FLEET_LIMIT, times(ofKind), nowMs)) {
      return `the limit ${limitText(FLEET_LIMIT)} of all services is reached`;
    }
    const request = {
      ...{ id: randomUUID(), service, timeMs: nowMs, untilMs: nowMs + forMs, by },
      ...(programs && { programs }),
      ...(captures && { captures }),
      hosts: [],
    };
    this.#requests = [...this.#requests, request].slice(-MOST_KEPT);
    this.#write(nowMs);
    return request;
  }

  open(nowMs: TimeMs): RequestJson[] {
    return this.#requests.filter(({ untilMs }) => nowMs < untilMs);
  }

  /** What a collector does about the open requests. True if it is new. */
  answered({ host, answers }: CollectorCall, nowMs: TimeMs): boolean {
    let isNew = false;
    for (const { id, programs, why: whole } of answers) {
      const why = oneLine(whole, LONGEST_WHY);
      const request = this.open(nowMs - LATE_MS).find((one) => one.id === id);
      const known = request?.hosts.find((one) => one.host === host);
      if (request === undefined || (known === undefined && request.hosts.length >= MOST_HOSTS)) {
        continue;
      }
      if (known?.programs !== programs || known.why !== why) {
        const others = request.hosts.filter((one) => one !== known);
        request.hosts = [...others, { host, programs, why }];
        isNew = true;
      }
    }
    if (isNew && this.#timer === null) {
      this.#timer = setTimeout(() => this.#write(Date.now()), GATHER_MS);
      this.#timer.unref();
    }
    return isNew;
  }

  /** Writes what waits. */
  close(): void {
    if (this.#timer !== null) {
      this.#write(Date.now());
    }
  }

  /** `only`: of this service; undefined: of all. */
  document(only: string | undefined): RequestsJson {
    return {
      schema: "tidemark.requests/1",
      requests: this.#requests
        .filter(({ service }) => only === undefined || service === only)
        .reverse(),
      limits: { service: limitText(SERVICE_LIMIT), fleet: limitText(FLEET_LIMIT) },
    };
  }

  #read(): RequestJson[] {
    try {
      const { requests } = JSON.parse(readFileSync(this.#path, "utf8")) as RequestsJson;
      return [...requests].reverse();
    } catch (error) {
      const { code, message } = reasonOf(error);
      if (code !== "ENOENT") {
        this.#warn(`earlier requests cannot be read: ${this.#path}: ${message}`);
      }
      return [];
    }
  }

  #write(nowMs: TimeMs): void {
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
      this.#timer = null;
    }
    for (const request of this.#requests) {
      if (request.untilMs <= nowMs && request.hosts.length > MOST_ENDED_HOSTS) {
        const byPrograms = [...request.hosts].sort((a, b) => b.programs - a.programs);
        request.hosts = byPrograms.slice(0, MOST_ENDED_HOSTS);
      }
    }
    try {
      const text = JSON.stringify(this.document(undefined));
      writeFileSync(`${this.#path}.new`, text, { mode: 0o600, flush: true });
      renameSync(`${this.#path}.new`, this.#path);
    } catch (error) {
      this.#warn(`requests cannot be written to ${this.#path}: ${reasonOf(error).message}`);
    }
  }
}
