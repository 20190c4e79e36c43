/**
 * Requests of people to collectors: bounded in number and time, kept in `requests.json`, so that a restart of the server
 * loses none. Nothing here starts anything: a collector obeys within its own policy.
 */
import { randomUUID } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatWallClock } from "../../model/base/numbers.js";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { RequestJson, RequestsJson } from "../../model/documents/request_document.js";
import { reasonOf } from "../../model/errors/reason.js";
import { isWithin, type Limit, limitText } from "../../model/settings/limit.js";
import { type CollectorCall, MOST_OPEN_REQUESTS } from "../../model/wire/requests.js";

const NAME = "requests.json";
const HOUR: Millis = 3_600_000;
const SERVICE_LIMIT: Limit = { count: 6, perMs: HOUR };
const FLEET_LIMIT: Limit = { count: 60, perMs: HOUR };
/** Newest requests that stay in the list. */
const MOST_KEPT = 200;
/** Hosts that answer one request. */
const MOST_HOSTS = 1_000;

export class RequestBook {
  readonly #path: string;
  readonly #warn: (text: string) => void;
  /** Oldest first. */
  #requests: RequestJson[];

  constructor(folder: string, warn: (text: string) => void) {
    this.#path = join(folder, NAME);
    this.#warn = warn;
    this.#requests = this.#read();
  }

  /** The request, or why it is refused. */
  add(
    { service, forMs, by = "" }: { service: string; forMs: Millis; by?: string | undefined },
    nowMs: TimeMs,
  ): RequestJson | string {
    const open = this.open(nowMs);
    const same = open.find((request) => request.service === service);
    if (same !== undefined) {
      return `a profile of ${service} is already requested until ${formatWallClock(same.untilMs)}`;
    }
    if (open.length >= MOST_OPEN_REQUESTS) {
      return `${MOST_OPEN_REQUESTS} requests are open, and no more are accepted`;
    }
    const times = (all: readonly RequestJson[]) => all.map(({ timeMs }) => timeMs);
    const ofService = this.#requests.filter((request) => request.service === service);
    if (!isWithin(SERVICE_LIMIT, times(ofService), nowMs)) {
      return `the limit ${limitText(SERVICE_LIMIT)} of a service is reached`;
    }
    if (!isWithin(FLEET_LIMIT, times(this.#requests), nowMs)) {
      return `the limit ${limitText(FLEET_LIMIT)} of all services is reached`;
    }
    const request = {
      ...{ id: randomUUID(), service, timeMs: nowMs, untilMs: nowMs + forMs, by },
      hosts: [],
    };
    this.#requests = [...this.#requests, request].slice(-MOST_KEPT);
    this.#write();
    return request;
  }

  open(nowMs: TimeMs): RequestJson[] {
    return this.#requests.filter(({ untilMs }) => nowMs < untilMs);
  }

  /** What a collector does about the open requests. True if it is new. */
  answered({ host, answers }: CollectorCall, nowMs: TimeMs): boolean {
    let isNew = false;
    for (const { id, programs, why } of answers) {
      const request = this.open(nowMs).find((one) => one.id === id);
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
    if (isNew) {
      this.#write();
    }
    return isNew;
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

  #write(): void {
    try {
      const text = JSON.stringify(this.document(undefined));
      writeFileSync(`${this.#path}.new`, text, { mode: 0o600, flush: true });
      renameSync(`${this.#path}.new`, this.#path);
    } catch (error) {
      this.#warn(`requests cannot be written to ${this.#path}: ${reasonOf(error).message}`);
    }
  }
}
