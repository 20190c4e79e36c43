/**
 * The fleet's diagnosis of every service, made when it is asked for and then kept for a while.
 *
 *   services, in batches of processes ─ evidence (store) ─ diagnoseService ─ may leak? ─ sites (store) ─ diagnoseService again
 *
 * Other requests run between two services.
 */
import { setImmediate as turn } from "node:timers/promises";
import {
  diagnoseService,
  killsText,
  processesForSites,
  processesToLookAt,
  type ServiceEvidence,
} from "../../diagnose/index.js";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type {
  FleetDiagnosesJson,
  FleetDiagnosisJson,
  FleetKillsJson,
} from "../../model/documents/fleet_diagnosis_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { ServiceSpan, Store, Window } from "../../store/index.js";
import { batchesOf, KeptEvaluations } from "./kept_evaluations.js";

/** Twice the longest window of the diagnosis: what a version is compared with. */
const LOOK_BACK_MS: Millis = 14 * 86_400_000;
type Diagnosed = ServiceSpan & {
  readonly diagnosis: FleetDiagnosisJson;
  /** Processes whose lines would show what the diagnosis does not know. */
  readonly unseen: readonly string[];
};

/** null: nothing of the service was killed. */
type KillsOf = (service: string) => FleetKillsJson | null;

export class Diagnoses {
  readonly #store: Store;
  readonly #killsOf: KillsOf;
  readonly #warn: (text: string) => void;
  readonly #kept = new KeptEvaluations((endMs) => this.#evaluate(endMs));
  readonly #stopped = new AbortController();

  constructor(store: Store, killsOf: KillsOf, warn: (text: string) => void) {
    this.#store = store;
    this.#killsOf = killsOf;
    this.#warn = warn;
  }

  /** Ends an evaluation before its next service: whoever waits for it gets an AbortError. */
  stop(): void {
    this.#stopped.abort();
  }

  /** At the end of the window, of the services that reported in it. `service`: only this one. */
  async in(window: Window, service: string | undefined): Promise<FleetDiagnosesJson> {
    const services = await this.#kept.at(window.endMs);
    const diagnoses = services
      .filter(
        (each) =>
          each.lastMs >= window.startMs && (service === undefined || each.service === service),
      )
      .map(({ diagnosis }) => this.#withKills(diagnosis));
    return {
      schema: "tidemark.fleetDiagnoses/1",
      window: { ...window },
      diagnoses: diagnoses.sort(byUrgency),
    };
  }

  /** Of services that leak in a line that is unknown: the processes that should get the agent. */
  async unseen(endMs: TimeMs): Promise<{ service: string; processes: readonly string[] }[]> {
    return (await this.#kept.at(endMs))
      .filter(({ unseen }) => unseen.length > 0)
      .map(({ service, unseen }) => ({ service, processes: unseen }));
  }

  #withKills(diagnosis: FleetDiagnosisJson): FleetDiagnosisJson {
    const kills = this.#killsOf(diagnosis.service);
    if (kills === null) {
      return diagnosis;
    }
    const found = { rule: "kills", says: "leak" as const, detail: killsText(kills) };
    return { ...diagnosis, kills, evidence: [...diagnosis.evidence, found] };
  }

  async #evaluate(endMs: TimeMs): Promise<Diagnosed[]> {
    const window = { startMs: Math.max(0, endMs - LOOK_BACK_MS), endMs };
    const spans = await this.#store.fleetServices(window);
    const services: Diagnosed[] = [];
    for (const batch of batchesOf(spans)) {
      this.#stopped.signal.throwIfAborted();
      const names = batch.map(({ service }) => service);
      const evidence = await this.#store.fleetEvidence(names, window);
      for (const [at, each] of evidence.entries()) {
        const diagnosis = await this.#diagnose(each, spans.length).catch((error: unknown) => {
          this.#warn(
            `service ${oneLine(each.service)} could not be diagnosed: ${reasonOf(error).message}`,
          );
          return undiagnosed(each);
        });
        const unseen = processesToLookAt(each, diagnosis);
        services.push({ ...(batch[at] as ServiceSpan), diagnosis, unseen });
        await turn();
        this.#stopped.signal.throwIfAborted();
      }
    }
    return services;
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

/** In place of a diagnosis that failed: one service does not take the verdicts of the others with it. */
function undiagnosed({ service, window }: ServiceEvidence): FleetDiagnosisJson {
  return {
    schema: "tidemark.fleetDiagnosis/1",
    service,
    window: { ...window },
    verdict: {
      kind: "insufficient-evidence",
      confidence: 0,
      summary: `${service} could not be diagnosed.`,
    },
    ...{ versions: [], oddInstances: [], suspects: [], forecast: [], evidence: [] },
    limits: ["Its diagnosis failed; the reason is in the server's log."],
  };
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
