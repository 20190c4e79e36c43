import type { AdviceJson, VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { GpuGrowthJson } from "../../model/documents/gpu_document.js";
import type { Observations } from "../evidence/observations.js";
import type { Growth } from "../series/growth.js";
import type { SiteJudgement } from "../sites/suspects.js";

/** What one rule makes of the observations. */
export interface Finding {
  readonly says: "leak" | "no leak" | "silent";
  /** The verdict it speaks for; a silent one speaks for none. */
  readonly kind: VerdictKind | null;
  /** How sure, 0 to 1: the heaviest finding decides, an earlier rule of the list before a later one. */
  readonly weight: number;
  /** One sentence with the figures it rests on. */
  readonly detail: string;
  /** The sites that it accuses, where it accuses sites. */
  readonly suspects?: readonly SiteJudgement[];
  /** Sites that keep nothing, and read what those had made; most first. */
  readonly readers?: readonly SiteJudgement[];
  /** Growth of the memory that it is about, where sites do not show it. */
  readonly growth?: Growth;
  /** Bytes per ms that it explains, where that is neither its growth nor what its suspects grow by. */
  readonly explainedSlope?: number;
  /** A calm finding that names what grows, and why it will stop. */
  readonly namesCause?: true;
  /** The verdict's sentence, where that of its kind does not fit. */
  readonly sentence?: string;
  /** It is about a device's memory, not the host's: its detail is the verdict's sentence. */
  readonly about?: "device";
  /** Sites of device memory that it accuses, fastest growing first. */
  readonly deviceSites?: readonly GpuGrowthJson[];
  /** Advice that holds whatever the verdict is. */
  readonly beside?: readonly AdviceJson[];
  /** Where the rule knows better than the catalogue: with the figures of this case. */
  readonly advice?: readonly AdviceJson[];
}

/** One heuristic: it sees the evidence and answers leak, no leak, or nothing (null: its part is missing). */
export interface Rule {
  /** Stands in the document: words joined by hyphens. */
  readonly name: string;
  judge(observations: Observations): Finding | null;
}

export function silent(detail: string): Finding {
  return { says: "silent", kind: null, weight: 0, detail };
}
