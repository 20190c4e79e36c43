/** The memory that each service needs: its peaks from the store, and whether it leaks from its diagnosis. */
import { setImmediate as turn } from "node:timers/promises";
import { rightSize, type SizeEvidence, USUAL_MARGIN } from "../../diagnose/index.js";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { FleetSizesJson, ServiceSizeJson } from "../../model/documents/sizes_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { Store, Window } from "../../store/index.js";
import type { Diagnoses } from "./diagnoses.js";
import { batchesOf, KeptEvaluations } from "./kept_evaluations.js";

/** Twice a week, for what happens weekly. */
const LOOK_BACK_MS: Millis = 14 * 86_400_000;

export interface SizeSettings {
  /** Added to the peak. */
  readonly marginShare: number;
  readonly price?: { readonly perGibMonth: number; readonly currency: string };
}

interface Evaluation {
  readonly marginShare: number;
  /** Those that save most first. */
  readonly sizes: readonly ServiceSizeJson[];
}

export const USUAL_SIZES: SizeSettings = { marginShare: USUAL_MARGIN };

export class Sizes {
  readonly #store: Store;
  readonly #diagnoses: Diagnoses;
  readonly #settings: () => SizeSettings;
  readonly #warn: (text: string) => void;
  readonly #kept = new KeptEvaluations((endMs) => this.#evaluate(endMs));

  constructor(
    store: Store,
    diagnoses: Diagnoses,
    settings: () => SizeSettings,
    warn: (text: string) => void,
  ) {
    this.#warn = warn;
    this.#store = store;
    this.#diagnoses = diagnoses;
    this.#settings = settings;
  }

  /** At the end of the window, of the services that reported in it. `service`: only this one. */
  async in(window: Window, service: string | undefined): Promise<FleetSizesJson> {
    const { price } = this.#settings();
    const { diagnoses } = await this.#diagnoses.in(window, service);
    const asked = new Set(diagnoses.map((diagnosis) => diagnosis.service));
    const { marginShare, sizes: all } = await this.#kept.at(window.endMs);
    const sizes = all.filter((size) => asked.has(size.service));
    return {
      schema: "tidemark.fleetSizes/1",
      window: { ...window },
      marginShare,
      ...(price === undefined ? {} : { price: { ...price } }),
      savedBytes: sizes.reduce((sum, { savedBytes }) => sum + Math.max(0, savedBytes), 0),
      sizes,
    };
  }

  /** If a service cannot be read, the others are still answered: it is left out, with a warning. */
  async #evidence(services: readonly string[], window: Window): Promise<SizeEvidence[]> {
    try {
      return await this.#store.fleetPeaks(services, window);
    } catch (error) {
      const [name = ""] = services;
      if (services.length === 1) {
        this.#warn(`the peaks of ${oneLine(name)} could not be read: ${reasonOf(error).message}`);
        return [];
      }
      const found: SizeEvidence[] = [];
      for (const service of services) {
        found.push(...(await this.#evidence([service], window)));
      }
      return found;
    }
  }

  async #evaluate(endMs: TimeMs): Promise<Evaluation> {
    const { marginShare } = this.#settings();
    const window = { startMs: Math.max(0, endMs - LOOK_BACK_MS), endMs };
    const { diagnoses } = await this.#diagnoses.in(window, undefined);
    const diagnosisOf = new Map(diagnoses.map((diagnosis) => [diagnosis.service, diagnosis]));
    const sizes: ServiceSizeJson[] = [];
    for (const batch of batchesOf(await this.#store.fleetServices(window))) {
      const names = batch.map(({ service }) => service);
      for (const each of await this.#evidence(names, window)) {
        sizes.push(rightSize(each, diagnosisOf.get(each.service), marginShare));
      }
      await turn();
    }
    sizes.sort((a, b) => b.savedBytes - a.savedBytes || (a.service < b.service ? -1 : 1));
    return { marginShare, sizes };
  }
}
