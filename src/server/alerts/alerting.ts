/**
 * Evaluates the rules of alerts repeatedly, and notifies receivers.
 *
 *     store ─ diagnoses, lives ─► findings ─► AlertBook ─► alerts.json ─► notifications ─► receivers
 *
 * Failure modes:
 *   - the store fails, or an evaluation takes long: a warning; the next evaluation begins when this one has ended
 *   - a receiver fails: the others are notified; it is tried again after 1, 2, 4... evaluations, at most 15 minutes later
 *   - a receiver refuses one alert: it gets the others
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
import { postJson, ReceiverRefusal } from "../../recording/sender/post_json.js";
import type { Store } from "../../store/index.js";
import type { Diagnoses } from "../answers/diagnoses.js";
import type { ForecastBook } from "../forecasts/forecast_book.js";
import { AlertBook, MOST_ALERTS } from "./alert_book.js";
import { readAlerts, writeAlerts } from "./alert_file.js";
import { type Finding, findingsOf, unheard } from "./findings.js";
import { LevelLines } from "./level_lines.js";
import { type Moment, notificationsFor, type Sent } from "./notifications.js";
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
  readonly forecasts: ForecastBook;
  readonly folder: string;
  readonly settings: () => AlertSettings;
  /** The address that the server listens on. */
  readonly url: () => string;
  readonly warn: (text: string) => void;
  /** Alerts have changed. */
  readonly changed: () => void;
  /** After each evaluation. Does not reject. */
  readonly evaluated?: (nowMs: TimeMs) => Promise<void>;
}

const HOUR_MS: Millis = 3_600_000;
const DAY_MS: Millis = 24 * HOUR_MS;
/** If the rules were not evaluated for longer, the server was down. */
const GAP_MS: Millis = 5 * 60_000;
const GAP_EVALUATIONS = 3;
const UNHEARD_MS: Millis = 5 * 60_000;
const LONGEST_PAUSE_MS: Millis = 15 * 60_000;
/** For all notifications to one receiver; the next evaluation sends what is left. */
const DELIVERY_MS: Millis = 30_000;

interface Delivery {
  acceptedMs: TimeMs | null;
  error: string | null;
  failures: number;
  /** The next attempt is not made earlier. */
  dueMs: TimeMs;
}

export class Alerting {
  readonly #parts: AlertingParts;
  readonly #book: AlertBook;
  /** By key of a receiver, by alert. */
  readonly #notified: Map<string, Map<string, Sent>>;
  readonly #deliveries = new Map<string, Delivery>();
  readonly #levels: LevelLines;
  #timer: NodeJS.Timeout | null = null;
  #working: Promise<void> = Promise.resolve();
  #willNotify = false;
  readonly #listeningMs = Date.now();
  readonly #stopped = new AbortController();

  constructor(parts: AlertingParts) {
    this.#parts = parts;
    this.#levels = new LevelLines(parts.store);
    const { alerts, notified, evaluatedMs } = readAlerts(parts.folder, parts.warn);
    this.#book = new AlertBook(alerts, evaluatedMs);
    this.#notified = new Map([...notified].map(([key, sent]) => [key, new Map(sent)]));
  }

  /** Evaluates now, and then repeatedly. */
  start(): void {
    this.#working = this.#working.then(() => this.#evaluate());
    void this.#working.then(() => {
      if (!this.#stopped.signal.aborted) {
        this.#timer = setTimeout(() => this.start(), this.#parts.settings().everyMs);
      }
    });
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    clearTimeout(this.#timer ?? undefined);
    await this.#working;
  }

  /** Of the server's pages as people reach them, perhaps behind a proxy; null: as the server listens. */
  get externalUrl(): string | null {
    return this.#parts.settings().externalUrl;
  }

  document(): AlertsJson {
    const { rules, receivers } = this.#parts.settings();
    const { leftOut, evaluatedMs } = this.#book;
    return {
      schema: "tidemark.alerts/1",
      evaluatedMs,
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
    if (!this.#willNotify) {
      this.#willNotify = true;
      this.#working = this.#working.then(() => {
        this.#willNotify = false;
        return this.#notify(Date.now());
      });
    }
    return this.#book.all(Date.now()).find((alert) => alert.id === id) ?? null;
  }

  async #evaluate(): Promise<void> {
    const { store, diagnoses, forecasts, settings, warn, changed, evaluated } = this.#parts;
    const nowMs = Date.now();
    try {
      const window = { startMs: nowMs - DAY_MS, endMs: nowMs + 1 };
      const lives = await store.lives(window);
      const found = await diagnoses.in({ startMs: nowMs - HOUR_MS, endMs: nowMs }, undefined);
      forecasts.advance(found.diagnoses, lives, nowMs);
      const facts = {
        ...{ nowMs, lives, diagnoses: found.diagnoses },
        listeningMs: Math.min(nowMs, this.#listeningMs),
      };
      const before = JSON.stringify(this.#book.all(nowMs).map(({ id, state }) => [id, state]));
      const findings: Finding[] = [];
      for (const finding of findingsOf(settings().rules, facts)) {
        const diagnosis = facts.diagnoses.find(({ service }) => service === finding.service);
        findings.push(
          diagnosis === undefined ? finding : await this.#levels.explain(finding, diagnosis, nowMs),
        );
      }
      const gapMs = Math.max(GAP_MS, GAP_EVALUATIONS * settings().everyMs);
      this.#book.advance(findings, unheard(facts, UNHEARD_MS), nowMs, gapMs);
      this.#save();
      if (JSON.stringify(this.#book.all(nowMs).map(({ id, state }) => [id, state])) !== before) {
        changed();
      }
      await this.#notify(nowMs);
    } catch (error) {
      if (this.#stopped.signal.aborted) {
        return;
      }
      warn(`the rules of alerts could not be evaluated: ${reasonOf(error).message}`);
    }
    await evaluated?.(nowMs);
  }

  #save(): void {
    const { folder, warn } = this.#parts;
    try {
      const { evaluatedMs } = this.#book;
      writeAlerts(folder, {
        ...{ alerts: this.#book.stored(), notified: this.#notified, evaluatedMs },
      });
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
    const { settings, warn } = this.#parts;
    const delivery = this.#deliveryOf(receiver);
    // After a clock that jumped back, too.
    if (delivery.dueMs > nowMs && delivery.dueMs <= nowMs + LONGEST_PAUSE_MS) {
      return;
    }
    const sent = this.#notified.get(receiver.key) ?? new Map<string, Sent>();
    this.#notified.set(receiver.key, sent);
    let refused: string | null = null;
    try {
      const secret = receiver.secretFile === null ? "" : secretIn(receiver.secretFile);
      const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(DELIVERY_MS)]);
      const to = { secret, isBearer: receiver.kind !== "pagerduty", signal };
      const moment = this.#momentOf(nowMs, secret);
      for (const { body, alerts: about } of notificationsFor(receiver, alerts, sent, moment)) {
        try {
          await postJson(addressOf(receiver), body, { ...to, allowsLocal: receiver.allowsLocal });
        } catch (error) {
          if (!(error instanceof ReceiverRefusal) || !error.isOfContent) {
            throw error;
          }
          // The receiver may accept the others.
          refused = error.message;
          continue;
        }
        delivery.acceptedMs = nowMs;
        for (const { id, state, severity } of about) {
          sent.set(id, { state, severity, atMs: nowMs });
        }
      }
    } catch (error) {
      refused = reasonOf(error).message;
    }
    if (refused !== null && refused !== delivery.error && !this.#stopped.signal.aborted) {
      warn(`notifying ${receiver.name} failed: ${refused}`);
    }
    const { everyMs } = settings();
    delivery.error = refused;
    delivery.dueMs =
      refused === null
        ? 0
        : nowMs + Math.min(LONGEST_PAUSE_MS, everyMs * (2 ** delivery.failures - 0.5));
    delivery.failures = refused === null ? 0 : Math.min(delivery.failures + 1, 20);
  }

  #momentOf(nowMs: TimeMs, secret: string): Moment {
    const { settings, url } = this.#parts;
    const { everyMs, externalUrl } = settings();
    const base = (externalUrl ?? url()).replace(/\/+$/, "");
    const linkOf = ({ service }: AlertJson) =>
      service === "" ? `${base}/alerts` : `${base}/service?name=${encodeURIComponent(service)}`;
    return { nowMs, everyMs, linkOf, externalUrl: base, secret };
  }

  #forget(known: ReadonlySet<string>): void {
    const keys = new Set(this.#parts.settings().receivers.map(({ key }) => key));
    for (const [key, sent] of this.#notified) {
      if (!keys.has(key)) {
        this.#notified.delete(key);
      }
      for (const id of sent.keys()) {
        if (!known.has(id)) {
          sent.delete(id);
        }
      }
    }
  }

  #deliveryOf({ key }: Receiver): Delivery {
    const delivery = this.#deliveries.get(key) ?? {
      ...{ acceptedMs: null, error: null, failures: 0, dueMs: 0 },
    };
    this.#deliveries.set(key, delivery);
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
