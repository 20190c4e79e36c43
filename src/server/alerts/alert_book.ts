/**
 * The alerts of a server and their states.
 *
 *                  a rule holds                 for its `for`
 *     (nothing) ───────────────► pending ───────────────────────► firing
 *                                  │ none holds                    │ none holds for CLEAR_MS
 *                                  ▼                               ▼
 *                              (nothing)                        resolved ── a rule holds ──► pending
 *                                                                  │ KEPT_MS
 *                                                                  ▼
 *                                                              (nothing)
 *
 * A rule that holds only nearly keeps a pending or firing alert and does not begin one. An alert of a service that is not
 * heard keeps its state for a day. Several rules with one cause are one alert.
 */
import { createHash } from "node:crypto";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { AlertJson, AlertNoteJson } from "../../model/documents/alert_document.js";
import type { Finding } from "./findings.js";

/** How long no rule holds before an alert is resolved, so that one that holds on and off is one alert. */
const CLEAR_MS: Millis = 15 * 60_000;
const DAY_MS: Millis = 86_400_000;
/** Resolved alerts are shown, and their acknowledgements and silences kept, for this long. */
const KEPT_MS: Millis = 7 * DAY_MS;
export const MOST_ALERTS = 1000;

/** As it is stored between two starts of the server. */
export interface StoredAlert extends AlertJson {
  /** By name of a rule: since when it holds. */
  holding: Record<string, TimeMs>;
}

type Silenced = NonNullable<AlertJson["silenced"]>;

/** The summary of an alert is that of its first rule in this order: rules whose summaries name a line come first. */
const RANK: Readonly<Record<Finding["rule"]["condition"]["kind"], number>> = {
  verdict: 0,
  "time-to-limit": 1,
  growth: 2,
  regression: 3,
  fragmentation: 4,
  "oom-kills": 5,
  restarts: 6,
  silence: 7,
};

export class AlertBook {
  readonly #alerts = new Map<string, StoredAlert>();
  #leftOut = 0;
  #evaluatedMs: TimeMs;

  /** `evaluatedMs`: the time of the last evaluation before. */
  constructor(stored: readonly StoredAlert[] = [], evaluatedMs: TimeMs = 0) {
    this.#evaluatedMs = evaluatedMs;
    for (const alert of stored) {
      this.#alerts.set(alert.id, alert);
    }
  }

  /** `unheard`: services of which nothing is known now. `gapMs`: a longer time since the last evaluation is a gap. */
  advance(
    findings: readonly Finding[],
    unheard: ReadonlySet<string>,
    nowMs: TimeMs,
    gapMs: Millis = Number.POSITIVE_INFINITY,
  ): void {
    this.#leftOut = 0;
    this.#setTimes(nowMs, gapMs);
    const byAlert = this.#assigned(findings);
    for (const [id, own] of byAlert) {
      this.#hold(id, own, nowMs);
    }
    for (const alert of this.#alerts.values()) {
      if (!byAlert.has(alert.id)) {
        this.#clear(alert, unheard.has(alert.service), nowMs);
      }
    }
  }

  /**
   * A clock that jumped back leaves no time in the future. After a gap, rules begin to hold again, and alerts have a whole
   * time to clear.
   */
  #setTimes(nowMs: TimeMs, gapMs: Millis): void {
    const isGap = this.#evaluatedMs > 0 && nowMs - this.#evaluatedMs > gapMs;
    this.#evaluatedMs = nowMs;
    const past = (timeMs: TimeMs) => Math.min(timeMs, nowMs);
    for (const alert of this.#alerts.values()) {
      const { firingMs, resolvedMs, holding } = alert;
      this.#alerts.set(alert.id, {
        ...alert,
        sinceMs: past(alert.sinceMs),
        lastMs: isGap && alert.state === "firing" ? nowMs : past(alert.lastMs),
        ...(firingMs === undefined ? {} : { firingMs: past(firingMs) }),
        ...(resolvedMs === undefined ? {} : { resolvedMs: past(resolvedMs) }),
        holding: Object.fromEntries(
          Object.entries(holding).map(([name, timeMs]) => [name, isGap ? nowMs : past(timeMs)]),
        ),
      });
    }
  }

  get evaluatedMs(): TimeMs {
    return this.#evaluatedMs;
  }

  /** Firing first, then pending, then resolved; within each the most severe first, then the newest. */
  all(nowMs: TimeMs): AlertJson[] {
    return [...this.#alerts.values()]
      .map(({ holding: _, ...alert }) => withoutOldSilence(alert, nowMs))
      .sort((a, b) => orderOf(a) - orderOf(b) || b.sinceMs - a.sinceMs || (a.id < b.id ? -1 : 1));
  }

  stored(): StoredAlert[] {
    return [...this.#alerts.values()];
  }

  /** Findings of the last evaluation for which there was no room. */
  get leftOut(): number {
    return this.#leftOut;
  }

  /** null: takes it back. False: there is no such alert. */
  acknowledge(id: string, note: AlertNoteJson | null): boolean {
    return this.#change(id, ({ acknowledged: _, ...alert }) =>
      note === null ? alert : { ...alert, acknowledged: note },
    );
  }

  /** null: ends the silence. False: there is no such alert. */
  silence(id: string, silenced: Silenced | null): boolean {
    return this.#change(id, ({ silenced: _, ...alert }) =>
      silenced === null ? alert : { ...alert, silenced },
    );
  }

  #change(id: string, change: (alert: StoredAlert) => StoredAlert): boolean {
    const alert = this.#alerts.get(id);
    if (alert === undefined) {
      return false;
    }
    this.#alerts.set(id, change(alert));
    return true;
  }

  /**
   * By alert. A finding about growth since another version continues the alert of its service if nothing was found about
   * that alert's own version: the estimate of the first version may change.
   */
  #assigned(findings: readonly Finding[]): Map<string, Finding[]> {
    const byAlert = new Map<string, Finding[]>();
    const add = (id: string, finding: Finding) => {
      const own = byAlert.get(id);
      if (own === undefined) {
        byAlert.set(id, [finding]);
      } else {
        own.push(finding);
      }
    };
    const exact = new Set(findings.map(idOf));
    for (const finding of findings) {
      const id = idOf(finding);
      const adopted = this.#isOpen(id)
        ? undefined
        : this.stored().find(
            (alert) =>
              this.#isOpen(alert.id) &&
              !exact.has(alert.id) &&
              alert.service === finding.service &&
              alert.cause === "growth" &&
              finding.cause === "growth",
          );
      add(adopted?.id ?? id, finding);
    }
    return byAlert;
  }

  #isOpen(id: string): boolean {
    const state = this.#alerts.get(id)?.state;
    return state === "pending" || state === "firing";
  }

  #hold(id: string, findings: readonly Finding[], nowMs: TimeMs): void {
    const before = this.#alerts.get(id);
    const isOpen = before !== undefined && before.state !== "resolved";
    const held = findings.filter(
      ({ holds, rule }) =>
        holds === "fully" || (isOpen && Object.hasOwn(before.holding, rule.name)),
    );
    const [main, ...others] = held.sort(
      (a, b) => RANK[a.rule.condition.kind] - RANK[b.rule.condition.kind],
    );
    if (main === undefined) {
      if (before !== undefined) {
        this.#clear(before, false, nowMs);
      }
      return;
    }
    if (before === undefined && !this.#hasRoom()) {
      this.#leftOut++;
      return;
    }
    const all = [main, ...others];
    const since = (name: string) =>
      isOpen && Object.hasOwn(before.holding, name) ? (before.holding[name] ?? nowMs) : nowMs;
    const holding = Object.fromEntries(all.map(({ rule }) => [rule.name, since(rule.name)]));
    const isDue = all.some(({ rule }) => nowMs - since(rule.name) >= rule.forMs);
    const firingMs = isOpen ? before.firingMs : undefined;
    const begins = isDue ? (firingMs ?? nowMs) : firingMs;
    const severity = all.some(({ rule }) => rule.severity === "critical") ? "critical" : "warning";
    const isWorse = severity === "critical" && before?.severity === "warning";
    const { acknowledged } = isOpen && !isWorse ? before : {};
    this.#alerts.set(id, {
      id,
      ...(before === undefined
        ? { service: main.service, version: main.version, host: main.host, cause: main.cause }
        : {
            service: before.service,
            version: before.version,
            host: before.host,
            cause: before.cause,
          }),
      state: begins === undefined ? "pending" : "firing",
      severity,
      rules: [...new Set(all.map(({ rule }) => rule.name))],
      summary: main.summary,
      ...known("line", all),
      ...known("holder", all),
      ...known("growth", all),
      ...known("forecast", all),
      sinceMs: isOpen ? before.sinceMs : nowMs,
      ...(begins === undefined ? {} : { firingMs: begins }),
      lastMs: nowMs,
      // Somebody who acknowledged an alert has not seen the next one, nor that it became critical.
      ...(acknowledged === undefined ? {} : { acknowledged }),
      ...(before?.silenced === undefined ? {} : { silenced: before.silenced }),
      holding,
    });
  }

  /** The oldest resolved alert makes room for a new one. */
  #hasRoom(): boolean {
    if (this.#alerts.size >= MOST_ALERTS) {
      const [oldest] = this.stored()
        .filter(({ state }) => state === "resolved")
        .sort((a, b) => (a.resolvedMs ?? 0) - (b.resolvedMs ?? 0));
      this.#alerts.delete(oldest?.id ?? "");
    }
    return this.#alerts.size < MOST_ALERTS;
  }

  #clear(alert: StoredAlert, isUnheard: boolean, nowMs: TimeMs): void {
    if (alert.state === "resolved") {
      const isSilenced = (alert.silenced?.untilMs ?? 0) > nowMs;
      if (!isSilenced && nowMs - (alert.resolvedMs ?? 0) > KEPT_MS) {
        this.#alerts.delete(alert.id);
      }
      return;
    }
    if (isUnheard && nowMs - alert.lastMs < DAY_MS) {
      return;
    }
    if (alert.state === "pending") {
      this.#alerts.delete(alert.id);
    } else if (nowMs - alert.lastMs >= CLEAR_MS) {
      this.#alerts.set(alert.id, { ...alert, state: "resolved", resolvedMs: nowMs, holding: {} });
    }
  }
}

/** 16 hex digits. */
function idOf({ service, version, host, cause }: Finding): string {
  const text = JSON.stringify([service, version, host, cause]);
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function known<Key extends "line" | "holder" | "growth" | "forecast">(
  key: Key,
  findings: readonly Finding[],
): Pick<Finding, Key> | Record<string, never> {
  const value = findings.find((finding) => finding[key] !== undefined)?.[key];
  return value === undefined ? {} : ({ [key]: value } as Pick<Finding, Key>);
}

function withoutOldSilence(alert: AlertJson, nowMs: TimeMs): AlertJson {
  const { silenced, ...rest } = alert;
  return silenced === undefined || silenced.untilMs <= nowMs ? rest : alert;
}

function orderOf({ state, severity }: AlertJson): number {
  const states = { firing: 0, pending: 2, resolved: 4 };
  return states[state] + (severity === "critical" ? 0 : 1);
}
