/** What a message says, whichever library wrote it: one reader a library makes it of the text. */
import type { OomEventJson } from "../../model/gpu_document.js";
import type { ConfName } from "../advice.js";
import type { OomFigures, OomVerdict } from "./oom_verdict.js";

export interface OomReading {
  readonly framework: OomEventJson["framework"];
  readonly library: string;
  readonly memory: OomEventJson["memory"];
  readonly device: number | null;
  readonly torch: string;
  readonly figures: OomFigures;
  readonly verdict: OomVerdict;
  /** The setting that the advice names. */
  readonly conf?: ConfName;
}

/** What a message says nothing about. */
export const NO_FIGURES: OomFigures = {
  requestedBytes: null,
  totalBytes: null,
  freeBytes: null,
  allocatedBytes: null,
  reservedUnallocatedBytes: null,
  processBytes: null,
  otherProcesses: [],
  privatePoolBytes: null,
  allowedBytes: null,
};

/** A reading of the few things that a message says. */
export function reading(
  verdict: OomVerdict,
  figures: Partial<OomFigures> = {},
  rest: Partial<Omit<OomReading, "verdict" | "figures">> = {},
): OomReading {
  return {
    framework: "pytorch",
    library: "",
    memory: "device",
    device: null,
    torch: "",
    ...rest,
    figures: { ...NO_FIGURES, ...figures },
    verdict,
  };
}
