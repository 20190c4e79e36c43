import type { Millis } from "../../model/base/units.js";
import type { AdviceJson, VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { GpuGrowthJson } from "../../model/documents/gpu/gpu_document.js";
import type { Observations } from "../evidence/observations.js";
import type { Growth } from "../series/growth.js";
import type { SiteJudgement } from "../sites/suspects.js";

/** The result of one rule. */
export interface Finding {
  readonly says: "leak" | "no leak" | "silent";
  /** The verdict that the finding supports; null for a silent finding. */
  readonly kind: VerdictKind | null;
  /** Confidence, 0 to 1. The finding with the largest weight decides; between equal weights, the earlier rule. */
  readonly weight: number;
  /** One sentence with the figures that support the finding. */
  readonly detail: string;
  /** The sites that the finding accuses, if any. */
  readonly suspects?: readonly SiteJudgement[];
  /** Sites that keep nothing but read the suspects' objects, most reads first. */
  readonly readers?: readonly SiteJudgement[];
  /** Growth of the memory concerned, if sites do not show it. */
  readonly growth?: Growth;
  /** Bytes per ms that the finding explains, if that differs from its growth and from its suspects' growth. */
  readonly explainedSlope?: number;
  /** A harmless finding that names what grows and why it will stop. */
  readonly namesCause?: true;
  /** Replaces the verdict's sentence for this kind. */
  readonly sentence?: string;
  /** The finding concerns device memory, not host memory; its detail becomes the verdict's sentence. */
  readonly about?: "device";
  /** Accused sites of device memory, fastest growing first. */
  readonly deviceSites?: readonly GpuGrowthJson[];
  /** Total window length, including the time already watched, that would settle the question. */
  readonly neededMs?: Millis;
  /** Advice that applies whatever the verdict is. */
  readonly beside?: readonly AdviceJson[];
  /** Advice from the rule itself, with the figures of this case; replaces the catalogue's. */
  readonly advice?: readonly AdviceJson[];
}

/** One heuristic. It reads the evidence and returns a finding, or null if the evidence it needs is missing. */
export interface Rule {
  /** Appears in the document: words joined by hyphens. */
  readonly name: string;
  judge(observations: Observations): Finding | null;
}

/** A finding that asks for more evidence. Its sentence contains the window length from `settledBy`. */
export function open(detail: string, weight: number, neededMs: Millis): Finding {
  return { says: "silent", kind: "insufficient-evidence", weight, detail, neededMs };
}

export function silent(detail: string): Finding {
  return { says: "silent", kind: null, weight: 0, detail };
}
