/**
 * Holds the diagnosis to its forecasts: what it said about a process before the kernel killed it for memory.
 *
 *     each evaluation ─ forecasts ─► the first one about each process ─┐
 *                     └ lives ─────► kills ────────────────────────────┴─► KillRecord: by service, of two weeks
 *
 * Only the first forecast about a process counts, since a later one is easier. It counts once: a program may lose several
 * child processes. It is kept in `forecasts.json` in the
 * server's folder.
 *
 * Failure modes:
 *   - the server was down when a process was killed: the kill is counted later, if it is within the day that lives cover
 *   - kills from before the first start of the book: they are left out, because no forecast could have been made
 *   - the file is damaged: it is put aside with a warning, and the record begins again
 *   - the file cannot be written: a warning; the record goes on in memory
 */
import { join } from "node:path";
import { z } from "zod";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type {
  FleetDiagnosisJson,
  FleetKillsJson,
} from "../../model/documents/fleet_diagnosis_document.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { ProcessLife } from "../../store/index.js";
import { readKept, writeKept } from "../files/kept_file.js";

export const FORECAST_FILE = "forecasts.json";
const FORM = 1;
const KEPT_MS: Millis = 14 * 86_400_000;
/** A forecast that comes later warns nobody. */
const LEAST_LEAD_MS: Millis = 5 * 60_000;
/** Later than this is never: such a rate is nothing. */
const FARTHEST_MS: Millis = 10 * 365 * 86_400_000;
/** Oldest first out. */
const MOST_KILLS = 5_000;
const MOST_FORECASTS = 50_000;

const timeMs = z.number().int().min(0);
const FORECAST = z.object({
  /** \`lastMs\`: when the process was last heard of. */
  ...{ process: z.string(), madeMs: timeMs, lastMs: timeMs },
  /** When the limit would be reached, and the ends of its interval; 0: never. */
  ...{ dueMs: timeMs, earliestMs: timeMs, latestMs: timeMs },
});
const KILL = z.object({
  ...{ service: z.string(), process: z.string(), atMs: timeMs },
  forecast: FORECAST.nullable(),
});
const STATE = z.object({
  form: z.literal(FORM),
  sinceMs: timeMs,
  forecasts: z.array(FORECAST),
  kills: z.array(KILL),
});
type Forecast = z.infer<typeof FORECAST>;
type Kill = z.infer<typeof KILL>;

export class ForecastBook {
  readonly #folder: string;
  readonly #warn: (text: string) => void;
  #sinceMs: TimeMs | null = null;
  /** By process: the first one made about it. */
  #forecasts = new Map<string, Forecast>();
  #kills: Kill[] = [];
  /** Of the last evaluation. */
  #nowMs: TimeMs = 0;

  constructor(folder: string, warn: (text: string) => void) {
    this.#folder = folder;
    this.#warn = warn;
    this.#read();
  }

  advance(
    diagnoses: readonly FleetDiagnosisJson[],
    lives: readonly ProcessLife[],
    nowMs: TimeMs,
  ): void {
    const isFirst = this.#sinceMs === null;
    // A clock that was ahead must not hide what comes until then.
    const sinceMs = Math.min(this.#sinceMs ?? nowMs, nowMs);
    this.#sinceMs = sinceMs;
    this.#nowMs = nowMs;
    const counted = new Set(this.#kills.map(nameOf));
    const killed = lives
      .flatMap(({ service, process, killsMs }) =>
        killsMs.map((atMs) => ({ service, process, atMs, forecast: null })),
      )
      .filter((kill) => kill.atMs >= sinceMs && !counted.has(nameOf(kill)))
      .sort((a, b) => a.atMs - b.atMs)
      .map((kill) => ({ ...kill, forecast: this.#takeForecast(kill) }));
    const made = diagnoses
      .flatMap(({ forecast, window: { endMs } }) =>
        forecast.map(({ process, ...left }) => ({ process, endMs, ...left })),
      )
      .filter(({ process, msToLimit }) => msToLimit > 0 && !this.#forecasts.has(process))
      .map(({ process, endMs, msToLimit, earliestMs, latestMs }): Forecast => {
        const at = (ms: Millis) => (ms === 0 || ms > FARTHEST_MS ? 0 : Math.round(endMs + ms));
        const due = { dueMs: at(msToLimit), earliestMs: at(earliestMs), latestMs: at(latestMs) };
        return { process, madeMs: nowMs, lastMs: nowMs, ...due };
      });
    for (const forecast of made) {
      this.#forecasts.set(forecast.process, forecast);
    }
    this.#kills.push(...killed);
    const heard = new Set(lives.map(({ process }) => process));
    if (this.#forget(heard, nowMs) || isFirst || made.length > 0 || killed.length > 0) {
      this.#write();
    }
  }

  /** null: nothing of the service was killed for memory while the book was kept. */
  recordOf(service: string): FleetKillsJson | null {
    const own = this.#kills.filter((kill) => kill.service === service);
    if (own.length === 0) {
      return null;
    }
    const known = own.flatMap(({ atMs, forecast }) =>
      forecast === null ? [] : [{ atMs, ...forecast }],
    );
    const leads = known.map(({ atMs, madeMs }) => atMs - madeMs).sort((a, b) => a - b);
    const within = known.filter(
      ({ atMs, earliestMs, latestMs }) =>
        atMs >= earliestMs && (latestMs === 0 || atMs <= latestMs),
    );
    return {
      sinceMs: Math.max(this.#sinceMs ?? 0, this.#nowMs - KEPT_MS),
      count: own.length,
      forecast: known.length,
      withinInterval: within.length,
      ...(leads.length === 0 ? {} : { medianLeadMs: leads[leads.length >> 1] as number }),
    };
  }

  /** Services of which something was killed. */
  get services(): readonly string[] {
    return [...new Set(this.#kills.map(({ service }) => service))];
  }

  #takeForecast({ process, atMs }: Kill): Forecast | null {
    const made = this.#forecasts.get(process);
    this.#forecasts.delete(process);
    return made !== undefined && made.madeMs <= atMs - LEAST_LEAD_MS ? made : null;
  }

  /** @returns whether anything was forgotten. */
  #forget(heard: ReadonlySet<string>, nowMs: TimeMs): boolean {
    const before = this.#kills.length + this.#forecasts.size;
    this.#kills = this.#kills.filter(({ atMs }) => atMs > nowMs - KEPT_MS).slice(-MOST_KILLS);
    const kept = [...this.#forecasts.values()]
      .map((each) => (heard.has(each.process) ? { ...each, lastMs: nowMs } : each))
      .filter(({ madeMs, lastMs }) => lastMs > nowMs - KEPT_MS && madeMs <= nowMs);
    this.#forecasts = new Map(kept.slice(-MOST_FORECASTS).map((each) => [each.process, each]));
    return this.#kills.length + this.#forecasts.size < before;
  }

  #read(): void {
    const stateIn = (text: string) => STATE.parse(JSON.parse(text));
    const path = join(this.#folder, FORECAST_FILE);
    const state = readKept(path, "earlier forecasts", stateIn, this.#warn);
    if (state !== null) {
      this.#sinceMs = state.sinceMs;
      this.#forecasts = new Map(state.forecasts.map((each) => [each.process, each]));
      this.#kills = state.kills;
    }
  }

  #write(): void {
    const state: z.infer<typeof STATE> = {
      ...{ form: FORM, sinceMs: this.#sinceMs ?? 0 },
      ...{ forecasts: [...this.#forecasts.values()], kills: this.#kills },
    };
    try {
      writeKept(join(this.#folder, FORECAST_FILE), state);
    } catch (error) {
      this.#warn(`the forecasts could not be saved: ${reasonOf(error).message}`);
    }
  }
}

function nameOf({ process, atMs }: Pick<Kill, "process" | "atMs">): string {
  return `${process} ${atMs}`;
}
