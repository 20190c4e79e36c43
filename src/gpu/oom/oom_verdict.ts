/** A verdict on an out-of-memory message, and the figures that it is made of. */
import type { OomEventJson } from "../../model/gpu_document.js";
import type { GpuAdviceId } from "../advice.js";

export { formatBytesLikePyTorch as sizeText } from "../../model/numbers.js";

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
  readonly advice: GpuAdviceId[];
}
