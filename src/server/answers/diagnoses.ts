/**
 * The fleet's diagnosis of every service, made when it is asked for and then kept for a while.
 *
 *   services, in batches of processes ─ evidence (store) ─ diagnoseService ─ may leak? ─ sites (store) ─ diagnoseService again
 *
 * One evaluation runs at a time and lets other requests run between two services. One that took long is used again for
 * ten times as long.
 */
import { setImmediate as turn } from "node:timers/promises";
import { diagnoseService, processesForSites, type ServiceEvidence } from "../../diagnose/index.js";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type {
  FleetDiagnosesJson,
  FleetDiagnosisJson,
} from "../../model/documents/fleet_diagnosis_document.js";
import type { ServiceSpan, Store, Window } from "../../store/index.js";

/** Twice the longest window of the diagnosis: what a version is compared with. */
const LOOK_BACK_MS: Millis = 14 * 86_400_000;
/** Evidence of a process takes about 15 KB. */
const MOST_PROCESSES = 500;
/** A shorter evaluation is made again for each request. */
const SHORT_MS: Millis = 1_000;
const KEPT_FACTOR = 10;
const MOST_KEPT = 4;

interface Evaluation {
  readonly endMs: TimeMs;
  readonly keptMs: Millis;
  readonly services: readonly (ServiceSpan & { readonly diagnosis: FleetDiagnosisJson })[];
}

export class Diagnoses {
  readonly #store: Store;
  #kept: readonly Evaluation[] = [];
  #last: Promise<unknown> = Promise.resolve();

  constructor(store: Store) {
    this.#store = store;
  }

  /** At the end of the window, of the services that reported in it. `service`: only this one. */
  async in(window: Window, service: string | undefined): Promise<FleetDiagnosesJson> {
    const { services } = await this.#at(window.endMs);
    const diagnoses = services
      .filter(
        (each) =>
          each.lastMs >= window.startMs && (service === undefined || each.service === service),
      )
      .map(({ diagnosis }) => diagnosis);
    return {
      schema: "tidemark.fleetDiagnoses/1",
      window: { ...window },
      diagnoses: diagnoses.sort(byUrgency),
    };
  }

  #at(endMs: TimeMs): Promise<Evaluation> {
    const result = this.#last.then(async () => {
      const kept = this.#kept.find((each) => Math.abs(each.endMs - endMs) <= each.keptMs);
      if (kept !== undefined) {
        return kept;
      }
      const made = await this.#evaluate(endMs);
      this.#kept = [made, ...this.#kept].slice(0, MOST_KEPT);
      return made;
    });
    this.#last = result.catch(() => {});
    return result;
  }

  async #evaluate(endMs: TimeMs): Promise<Evaluation> {
    const begun = performance.now();
    const window = { startMs: Math.max(0, endMs - LOOK_BACK_MS), endMs };
    const spans = await this.#store.fleetServices(window);
    const services: Evaluation["services"][number][] = [];
    for (const batch of batchesOf(spans)) {
      const names = batch.map(({ service }) => service);
      const evidence = await this.#store.fleetEvidence(names, window);
      for (const [at, each] of evidence.entries()) {
        const diagnosis = await this.#diagnose(each, spans.length);
        services.push({ ...(batch[at] as ServiceSpan), diagnosis });
        await turn();
      }
    }
    const tookMs = performance.now() - begun;
    return { endMs, keptMs: tookMs < SHORT_MS ? 0 : KEPT_FACTOR * tookMs, services };
  }

  async #diagnose(evidence: ServiceEvidence, services: number): Promise<FleetDiagnosisJson> {
    const first = diagnoseService(evidence, services);
    const chosen = processesForSites(evidence, first);
    if (chosen.length === 0) {
      return first;
    }
    const { processes, window } = evidence;
    const sites = await this.#store.fleetSites(chosen, window);
    if (sites.size === 0) {
      return first;
    }
    const withSites = processes.map((each) => ({
      ...each,
      sites: sites.get(each.process) ?? each.sites,
    }));
    return diagnoseService({ ...evidence, processes: withSites }, services);
  }
}

function batchesOf(spans: readonly ServiceSpan[]): ServiceSpan[][] {
  const batches: ServiceSpan[][] = [];
  let room = 0;
  for (const span of spans) {
    if (room < span.processes) {
      batches.push([]);
      room = MOST_PROCESSES;
    }
    batches.at(-1)?.push(span);
    room -= span.processes;
  }
  return batches;
}

function byUrgency(a: FleetDiagnosisJson, b: FleetDiagnosisJson): number {
  const leftOf = ({ forecast }: FleetDiagnosisJson) =>
    forecast[0]?.msToLimit || Number.MAX_SAFE_INTEGER;
  const rateOf = ({ leak }: FleetDiagnosisJson) => leak?.growthBytesPerHour ?? 0;
  return (
    Number(b.leak !== undefined) - Number(a.leak !== undefined) ||
    leftOf(a) - leftOf(b) ||
    rateOf(b) - rateOf(a) ||
    (a.service < b.service ? -1 : 1)
  );
}
