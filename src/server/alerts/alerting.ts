/**
 * Evaluates the rules of alerts repeatedly, and notifies receivers.
 *
 *     store ─ diagnoses, lives ─► findings ─► AlertBook ─► alerts.json ─► notifications ─► receivers
 *
 * Failure modes:
 *   - the store fails, or an evaluation takes long: a warning; the next evaluation begins when this one has ended
 *   - a receiver fails: the others are notified; it is tried again after 1, 2, 4... evaluations, at most 15 minutes later
 *   - the server is killed: alerts.json has the last evaluation; a notification that was accepted just before may be repeated
 *   - alerts.json cannot be written: a warning; alerts go on
 */
import { readFileSync } from "node:fs";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type {
  AlertJson,
  AlertNoteJson,
  AlertReceiverJson,
  AlertsJson,
} from "../../model/documents/alert_document.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { Store } from "../../store/index.js";
import type { Diagnoses } from "../answers/diagnoses.js";
import { AlertBook, MOST_ALERTS } from "./alert_book.js";
import { readAlerts, writeAlerts } from "./alert_file.js";
import { findingsOf, unheard } from "./findings.js";
import { LevelLines } from "./level_lines.js";
import { notificationsFor, type Sent } from "./notifications.js";
import { postJson } from "./post_json.js";
import type { Receiver } from "./receivers.js";
import { type AlertRule, USUAL_RULES } from "./rules.js";

export interface AlertSettings {
  readonly rules: readonly AlertRule[];
  readonly receivers: readonly Receiver[];
  readonly everyMs: Millis;
  /** Of the server's pages, for links; null: the address that it listens on. */
  readonly externalUrl: string | null;
}

export const USUAL_ALERTS: AlertSettings = {
  rules: USUAL_RULES,
  receivers: [],
  everyMs: 60_000,
  externalUrl: null,
};

interface AlertingParts {
  readonly store: Store;
  readonly diagnoses: Diagnoses;
  readonly folder: string;
  readonly settings: () => AlertSettings;
  /** The address that the server listens on. */
  readonly url: () => string;
  readonly warn: (text: string) => void;
  /** Alerts have changed. */
  readonly changed: () => void;
}

const HOUR_MS: Millis = 3_600_000;
const DAY_MS: Millis = 24 * HOUR_MS;
const UNHEARD_MS: Millis = 5 * 60_000;
const LONGEST_PAUSE_MS: Millis = 15 * 60_000;

interface Delivery {
  acceptedMs: TimeMs | null;
  error: string | null;
  failures: number;
  /** Not tried before. */
  dueMs: TimeMs;
}

export class Alerting {
  readonly #parts: AlertingParts;
  readonly #book: AlertBook;
  readonly #notified: Record<string, Record<string, Sent>>;
  readonly #deliveries = new Map<string, Delivery>();
  readonly #levels: LevelLines;
  #evaluatedMs: TimeMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #working: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: AlertingParts) {
    this.#parts = parts;
    this.#levels = new LevelLines(parts.store);
    const { alerts, notified } = readAlerts(parts.folder, parts.warn);
    this.#book = new AlertBook(alerts);
    this.#notified = structuredClone(notified) as Record<string, Record<string, Sent>>;
  }

  /** Evaluates now, and then repeatedly. */
  start(): void {
    this.#working = this.#working.then(() => this.#evaluate());
    void this.#working.then(() => {
      if (!this.#isStopped) {
        this.#timer = setTimeout(() => this.start(), this.#parts.settings().everyMs);
      }
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer ?? undefined);
    await this.#working;
  }

  document(): AlertsJson {
    const { rules, receivers } = this.#parts.settings();
    const { leftOut } = this.#book;
    return {
      schema: "tidemark.alerts/1",
      evaluatedMs: this.#evaluatedMs,
      rules: rules.map(({ name }) => name),
      receivers: receivers.map((receiver) => this.#receiverJson(receiver)),
      alerts: this.#book.all(Date.now()),
      limits:
        leftOut === 0
          ? []
          : [`${leftOut} more alerts were left out: the server keeps at most ${MOST_ALERTS}.`],
    };
  }

  /** null: takes it back. @returns null if there is no such alert. */
  acknowledge(id: string, note: AlertNoteJson | null): AlertJson | null {
    return this.#book.acknowledge(id, note) ? this.#changed(id) : null;
  }

  /** null: ends the silence. @returns null if there is no such alert. */
  silence(id: string, silenced: AlertJson["silenced"] | null): AlertJson | null {
    return this.#book.silence(id, silenced ?? null) ? this.#changed(id) : null;
  }

  #changed(id: string): AlertJson | null {
    this.#save();
    this.#parts.changed();
    this.#working = this.#working.then(() => this.#notify(Date.now()));
    return this.#book.all(Date.now()).find((alert) => alert.id === id) ?? null;
  }

  async #evaluate(): Promise<void> {
    const { store, diagnoses, settings, warn, changed } = this.#parts;
    try {
      const nowMs = Date.now();
      const window = { startMs: nowMs - DAY_MS, endMs: nowMs + 1 };
      const lives = await store.lives(window);
      const found = await diagnoses.in({ startMs: nowMs - HOUR_MS, endMs: nowMs }, undefined);
      const facts = { nowMs, lives, diagnoses: found.diagnoses };
      const before = JSON.stringify(this.#book.all(nowMs).map(({ id, state }) => [id, state]));
      const findings = await Promise.all(
        findingsOf(settings().rules, facts).map((finding) => {
          const diagnosis = facts.diagnoses.find(({ service }) => service === finding.service);
          return diagnosis === undefined
            ? finding
            : this.#levels.explain(finding, diagnosis, nowMs);
        }),
      );
      this.#book.advance(findings, unheard(facts, UNHEARD_MS), nowMs);
      this.#evaluatedMs = nowMs;
      this.#save();
      if (JSON.stringify(this.#book.all(nowMs).map(({ id, state }) => [id, state])) !== before) {
        changed();
      }
      await this.#notify(nowMs);
    } catch (error) {
      warn(`the alerts' rules could not be evaluated: ${reasonOf(error).message}`);
    }
  }

  #save(): void {
    const { folder, warn } = this.#parts;
    try {
      writeAlerts(folder, { alerts: this.#book.stored(), notified: this.#notified });
    } catch (error) {
      warn(`the alerts could not be saved: ${reasonOf(error).message}`);
    }
  }

  async #notify(nowMs: TimeMs): Promise<void> {
    const alerts = this.#book.all(nowMs);
    const { receivers } = this.#parts.settings();
    await Promise.all(receivers.map((receiver) => this.#deliver(receiver, alerts, nowMs)));
    this.#forget(new Set(alerts.map(({ id }) => id)));
    this.#save();
  }

  async #deliver(receiver: Receiver, alerts: readonly AlertJson[], nowMs: TimeMs): Promise<void> {
    const { settings, url, warn } = this.#parts;
    const { everyMs, externalUrl } = settings();
    const delivery = this.#deliveryOf(receiver);
    if (delivery.dueMs > nowMs) {
      return;
    }
    const base = (externalUrl ?? url()).replace(/\/+$/, "");
    const linkOf = ({ service }: AlertJson) =>
      service === "" ? `${base}/alerts` : `${base}/service?name=${encodeURIComponent(service)}`;
    const sent = this.#notified[receiver.name] ?? {};
    this.#notified[receiver.name] = sent;
    try {
      const secret = receiver.secretFile === null ? "" : secretIn(receiver.secretFile);
      const moment = { nowMs, everyMs, linkOf, externalUrl: base, secret };
      for (const { body, alerts: about } of notificationsFor(receiver, alerts, sent, moment)) {
        const token = receiver.kind === "pagerduty" ? "" : secret;
        await postJson(addressOf(receiver), body, { token, allowsLocal: receiver.allowsLocal });
        delivery.acceptedMs = nowMs;
        for (const { id, state } of about) {
          sent[id] = { state, atMs: nowMs };
        }
      }
      delivery.error = null;
      delivery.failures = 0;
    } catch (error) {
      const { message } = reasonOf(error);
      if (delivery.error !== message) {
        warn(`the receiver ${receiver.name} takes no alerts: ${message}`);
      }
      delivery.error = message;
      delivery.dueMs = nowMs + Math.min(LONGEST_PAUSE_MS, everyMs * (2 ** delivery.failures - 0.5));
      delivery.failures = Math.min(delivery.failures + 1, 20);
    }
  }

  #forget(known: ReadonlySet<string>): void {
    for (const sent of Object.values(this.#notified)) {
      for (const id of Object.keys(sent)) {
        if (!known.has(id)) {
          delete sent[id];
        }
      }
    }
  }

  #deliveryOf({ name }: Receiver): Delivery {
    const delivery = this.#deliveries.get(name) ?? {
      ...{ acceptedMs: null, error: null, failures: 0, dueMs: 0 },
    };
    this.#deliveries.set(name, delivery);
    return delivery;
  }

  #receiverJson(receiver: Receiver): AlertReceiverJson {
    const { acceptedMs, error } = this.#deliveryOf(receiver);
    return {
      name: receiver.name,
      kind: receiver.kind,
      ...(acceptedMs === null ? {} : { acceptedMs }),
      ...(error === null ? {} : { error }),
    };
  }
}

/** Throws an Error of node:fs. */
function secretIn(path: string): string {
  return readFileSync(path, "utf8").trim();
}

function addressOf({ kind, url }: Receiver): string {
  return kind === "alertmanager" && !/\/api\/v2\/alerts\/?$/.test(url)
    ? `${url.replace(/\/+$/, "")}/api/v2/alerts`
    : url;
}
