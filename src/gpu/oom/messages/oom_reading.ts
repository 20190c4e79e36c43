/** The content of a message, whichever library wrote it: its figures, and the verdict drawn from them. */
import type { OomEventJson } from "../../../model/documents/gpu/gpu_document.js";
import type { ConfName, GpuAdviceId } from "../../analysis/advice.js";

export type OomFigures = Pick<
  OomEventJson,
  | "requestedBytes"
  | "totalBytes"
  | "freeBytes"
  | "allocatedBytes"
  | "reservedUnallocatedBytes"
  | "processBytes"
  | "otherProcesses"
  | "privatePoolBytes"
  | "allowedBytes"
>;

export interface OomVerdict {
  readonly kind: OomEventJson["kind"];
  readonly because: string;
  readonly advice: readonly GpuAdviceId[];
}

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

/** The figures of a message that has none. */
const NO_FIGURES: OomFigures = {
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

/** A reading with defaults for everything that is not given. */
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
