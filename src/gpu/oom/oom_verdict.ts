/** A verdict on an out-of-memory message, and the figures that it is made of. */
import type { OomEventJson } from "../../model/gpu_document.js";
import type { Bytes } from "../../model/units.js";
import type { GpuAdviceId } from "../advice.js";

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

/** "1.50 GiB", as PyTorch prints it. */
export function sizeText(bytes: Bytes): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = bytes < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
  return power === 0 ? `${bytes} bytes` : `${(bytes / 1024 ** power).toFixed(2)} ${units[power]}`;
}
