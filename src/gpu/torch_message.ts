/**
 * PyTorch's out-of-memory text, of every version. Terminals and launchers wrap it anywhere, within words
 * and figures too: it is therefore matched without any white space.
 *
 *   up to 1.3   Tried to allocate X (GPU 0; T total capacity; A already allocated; F free; R cached)
 *   to 2.0      ... F free; R reserved in total by PyTorch)
 *   2.1         GPU 0 has a total capacty of T of which F is free. Process N has O memory in use. Including
 *               non-PyTorch memory, this process has P memory in use. Of the allocated memory A is
 *               allocated by PyTorch, and U is reserved by PyTorch but unallocated.
 *   2.2         capacity
 *   2.5         torch.OutOfMemoryError; with X allocated in private pools
 *   2.9         PYTORCH_ALLOC_CONF; later again PYTORCH_CUDA_ALLOC_CONF, with another address of the documentation
 *   later       preemptively rejected ... Requested size: X; virtual-address-space (VSZ) exhaustion
 */
import type { Bytes } from "../model/units.js";

export interface TorchMessage {
  readonly platform: "CUDA" | "HIP" | "XPU";
  readonly device: number | null;
  readonly requestedBytes: Bytes | null;
  readonly totalBytes: Bytes | null;
  readonly freeBytes: Bytes | null;
  readonly allocatedBytes: Bytes | null;
  readonly reservedUnallocatedBytes: Bytes | null;
  readonly processBytes: Bytes | null;
  readonly otherProcesses: { pid: number; bytes: Bytes }[];
  readonly privatePoolBytes: Bytes | null;
  readonly allowedBytes: Bytes | null;
  readonly torch: string;
  /** The setting's name in the message itself; null where it names none. */
  readonly setting:
    | "PYTORCH_CUDA_ALLOC_CONF"
    | "PYTORCH_ALLOC_CONF"
    | "PYTORCH_HIP_ALLOC_CONF"
    | null;
  readonly cause: "device" | "address space" | "own limit" | "size beyond all" | "outside";
}

/** Where a message begins. The second kind comes from the driver or a library and has no figures. */
export const TORCH_START =
  /(?:CUDA|HIP|XPU) ?out ?of ?memory|(?:CUDA|HIP|XPU) error: out of memory|(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE|HIPBLAS|ROCBLAS|MIOPEN)_STATUS_ALLOC_FAILED|[Cc]uda runtime error \(2\) ?: out of memory|C(?:uda|UDA) failure.{0,12}out of memory|(?:CUDA|HIP)_ERROR_OUT_OF_MEMORY|(?:cuda|hip)ErrorMemoryAllocation|virtual-address-space \(VSZ\) exhaustion|ran out of memory outside PyTorch's allocator/;

const SIZE = "(\\d+(?:\\.\\d+)?)(bytes|B|KiB|MiB|GiB|TiB|KB|MB|GB)";
const UNITS: Readonly<Record<string, number>> = {
  bytes: 1,
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
  KB: 2 ** 10,
  MB: 2 ** 20,
  GB: 2 ** 30,
};

/** Bytes of SIZE's two groups. */
export function bytesOf(figure: string, unit: string): Bytes {
  return Math.round(Number(figure) * (UNITS[unit] ?? 1));
}

/** Without figures only what an error says counts: the words alone stand in code and comments too. */
const ERROR_ITSELF =
  /(?:Error|Exception):(?:.{0,20})(?:CUDA|HIP|XPU)outofmemory|error(?:\(2\))?:outofmemory|failure.{0,12}outofmemory|STATUS_ALLOC_FAILED|ERROR_OUT_OF_MEMORY|ErrorMemoryAllocation/;

const REQUEST = new RegExp(`outofmemory\\.?(?:.{0,40}?)Triedtoallocate${SIZE}`);

/** @param text the message and up to a few lines behind it; null where it holds none */
export function parseTorchMessage(text: string): TorchMessage | null {
  if (!TORCH_START.test(text) && !/(?:CUDA|HIP|XPU)outofmemory/.test(text.replace(/\s+/g, ""))) {
    return null;
  }
  const squeezed = text.replace(/\s+/g, "");
  const at = squeezed.search(REQUEST);
  const cause = causeOf(squeezed);
  if (at < 0 && cause === "device" && !ERROR_ITSELF.test(squeezed)) {
    return null;
  }
  const body = at < 0 ? "" : squeezed.slice(at);
  const size = (before: string, after: string): Bytes | null => {
    const match = new RegExp(before + SIZE + after).exec(body);
    return match === null ? null : bytesOf(match[1]!, match[2]!);
  };
  const allocated =
    size("", "(?:already|is)allocated(?:byPyTorch|;)") ?? size("", "alreadyallocated");
  const reserved = size("", "reservedintotal") ?? size("", "cached\\)");
  const device = /(?:GPU|XPU)(\d+)(?:;|has)/.exec(body)?.[1];
  return {
    platform: /HIPoutofmemory|HIPerror|HIPBLAS|ROCBLAS|MIOPEN|HIP_ERROR|hipError/.test(squeezed)
      ? "HIP"
      : /XPUoutofmemory|XPUerror/.test(squeezed)
        ? "XPU"
        : "CUDA",
    device: device === undefined ? null : Number(device),
    requestedBytes:
      size("Triedtoallocate", "") ?? sizeIn(squeezed, "memory_fractionlimit\\.Requestedsize:"),
    totalBytes: size("totalcapac(?:i?ty)of", "") ?? size("", "totalcapacity"),
    freeBytes: size("ofwhich", "isfree") ?? size("allocated;", "free"),
    allocatedBytes: allocated,
    reservedUnallocatedBytes:
      size("and", "isreservedbyPyTorchbutunallocated") ??
      (reserved === null || allocated === null ? null : Math.max(0, reserved - allocated)),
    processBytes: size("thisprocesshas", "memoryinuse"),
    otherProcesses: [...body.matchAll(new RegExp(`Process(\\d+)has${SIZE}memoryinuse`, "g"))].map(
      ([, pid, figure, unit]) => ({ pid: Number(pid), bytes: bytesOf(figure!, unit!) }),
    ),
    privatePoolBytes: size("with", "allocatedinprivatepools"),
    allowedBytes: size("", "allowed;"),
    torch: versionOf(squeezed, body, reserved !== null),
    setting: settingOf(squeezed),
    cause,
  };
}

function sizeIn(squeezed: string, before: string): Bytes | null {
  const match = new RegExp(before + SIZE).exec(squeezed);
  return match === null ? null : bytesOf(match[1]!, match[2]!);
}

function settingOf(squeezed: string): TorchMessage["setting"] {
  const name = /PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF/.exec(squeezed)?.[0];
  return (name as TorchMessage["setting"] | undefined) ?? null;
}

function causeOf(squeezed: string): TorchMessage["cause"] {
  if (/\(VSZ\)exhaustionfromexpandable/.test(squeezed)) return "address space";
  if (/preemptivelyrejected/.test(squeezed)) return "own limit";
  if (/Triedtoallocatemorethan1EB/.test(squeezed)) return "size beyond all";
  return /outsidePyTorch'sallocator/.test(squeezed) ? "outside" : "device";
}

function versionOf(squeezed: string, body: string, reservedInTotal: boolean): string {
  if (body === "") return "";
  if (/(?:iB|bytes)cached\)/.test(body)) return "up to 1.3";
  if (reservedInTotal) return "1.4 to 2.0";
  if (/totalcapactyof/.test(body)) return "2.1";
  if (/PYTORCH_ALLOC_CONF/.test(body)) return "2.9 or later";
  if (/#optimizing-memory-usage/.test(body)) return "2.10 or later";
  if (/torch\.OutOfMemoryError/.test(squeezed)) {
    return /#environment-variables/.test(body) ? "2.5 to 2.8" : "2.5 or later";
  }
  if (/torch\.cuda\.OutOfMemoryError/.test(squeezed)) return "2.2 to 2.4";
  return /totalcapacityof/.test(body) ? "2.2 or later" : "";
}
