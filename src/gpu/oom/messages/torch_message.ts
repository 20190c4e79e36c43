/**
 * PyTorch's out-of-memory message in every version. Terminals and launchers wrap it anywhere, even inside words
 * and numbers, so it is matched without white space.
 *
 *   up to 1.3   Tried to allocate X (GPU 0; T total capacity; A already allocated; F free; U cached)
 *               U is cached less allocated already (PR 13751: "held by the allocator but not used")
 *   to 2.0      ... F free; R reserved in total by PyTorch)    here A is a part of R
 *   2.1         GPU 0 has a total capacty of T of which F is free. Process N has O memory in use. Including
 *               non-PyTorch memory, this process has P memory in use. Of the allocated memory A is
 *               allocated by PyTorch, and U is reserved by PyTorch but unallocated.
 *   2.2         capacity
 *   2.5         torch.OutOfMemoryError; with X allocated in private pools
 *   2.9         PYTORCH_ALLOC_CONF; later again PYTORCH_CUDA_ALLOC_CONF, with another address of the documentation
 *   later       preemptively rejected ... Requested size: X; virtual-address-space (VSZ) exhaustion
 *
 * Plug-ins for other devices (NPU, MLU, MUSA) print the text of 2.0 with their own name.
 */
import type { Bytes } from "../../../model/base/units.js";
import { bytesOf, credible, SIZE, squeeze } from "./message_sizes.js";
import { isQuoted } from "./quoted.js";

export interface TorchMessage {
  readonly platform: "CUDA" | "HIP" | "XPU" | "other";
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
  /** Whether the text has a hint about max_split_size_mb, which exists since 1.10. */
  readonly splitNamed: boolean;
  readonly cause: "device" | "address space" | "own limit" | "size beyond all";
}

/** Where a message begins. */
export const TORCH_START =
  /(?:CUDA|HIP|XPU|NPU|MLU|MUSA) ?out ?of ?memory|virtual-address-space \(VSZ\) exhaustion/;

/** Without figures, only an actual error counts, because the words alone also occur in code and comments. */
const ERROR_ITSELF =
  /(?:Error|Exception):[^"'`\n]{0,20}(?:CUDA|HIP|XPU|NPU|MLU|MUSA) ?out of memory/;

const REQUEST = new RegExp(`outofmemory\\.?(?:.{0,40}?)Triedtoallocate${SIZE}`);

/** @param text the message and a few lines after it; null if it contains none */
export function parseTorchMessage(text: string): TorchMessage | null {
  const squeezed = squeeze(text);
  if (!TORCH_START.test(text) && !/(?:CUDA|HIP|XPU)outofmemory/.test(squeezed)) {
    return null;
  }
  const at = squeezed.search(REQUEST);
  const cause = causeOf(squeezed);
  if (at < 0 && cause === "device" && !mentionsError(text)) {
    return null;
  }
  const body = at < 0 ? "" : squeezed.slice(at);
  const size = (before: string, after: string): Bytes | null => {
    const match = new RegExp(before + SIZE + after).exec(body);
    return match === null ? null : bytesOf(match[1] ?? "", match[2] ?? "");
  };
  const allocated = credible(
    size("", "(?:already|is)allocated(?:byPyTorch|;)") ?? size("", "alreadyallocated"),
  );
  const reserved = credible(size("", "reservedintotal"));
  const split =
    size("and", "isreservedbyPyTorchbutunallocated") ??
    size("", "cached\\)") ??
    (reserved === null || allocated === null ? null : Math.max(0, reserved - allocated));
  const own = credible(size("thisprocesshas", "memoryinuse"));
  const device = /(?:GPU|XPU|NPU|MLU)(\d{1,5})(?:;|has)/.exec(body)?.[1];
  return {
    platform: platformOf(squeezed),
    device: device === undefined ? null : Number(device),
    requestedBytes:
      size("Triedtoallocate", "") ?? sizeIn(squeezed, "memory_fractionlimit\\.Requestedsize:"),
    totalBytes: credible(size("totalcapac(?:i?ty)of", "") ?? size("", "total(?:capacity)?;")),
    freeBytes: credible(size("ofwhich", "isfree") ?? size(";", "free")),
    allocatedBytes: allocated,
    reservedUnallocatedBytes: credible(split),
    // If NVML cannot see the process, it reports 0 or "not available" (2^64 - 1).
    processBytes:
      own !== null && own < KNOWN_SHARE * ((allocated ?? 0) + (split ?? 0)) ? null : own,
    otherProcesses: [...body.matchAll(new RegExp(`Process(\\d{1,10})has${SIZE}memoryinuse`, "g"))]
      .map(([, pid, figure = "", unit = ""]) => ({
        pid: Number(pid),
        bytes: bytesOf(figure, unit),
      }))
      .filter(({ bytes }) => credible(bytes) !== null),
    privatePoolBytes: size("with", "allocatedinprivatepools"),
    allowedBytes: credible(size("", "allowed;")),
    torch: versionOf(squeezed, body, reserved !== null),
    splitNamed: /max_split_size_mb/.test(squeezed),
    cause,
  };
}

/** A process holds at least its allocator's memory, except for rounding and shared pages. */
const KNOWN_SHARE = 0.95;

function mentionsError(text: string): boolean {
  const error = ERROR_ITSELF.exec(text.replace(/\s*\n\s*/g, " "));
  if (error === null) {
    return false;
  }
  const words = /(?:CUDA|HIP|XPU|NPU|MLU|MUSA) ?out of memory/.exec(text);
  return words === null || !isQuoted(text, words.index, words[0].length);
}

function platformOf(squeezed: string): TorchMessage["platform"] {
  if (/HIPoutofmemory/.test(squeezed)) {
    return "HIP";
  }
  if (/XPUoutofmemory/.test(squeezed)) {
    return "XPU";
  }
  return /(?:NPU|MLU|MUSA)outofmemory/.test(squeezed) ? "other" : "CUDA";
}

function sizeIn(squeezed: string, before: string): Bytes | null {
  const match = new RegExp(before + SIZE).exec(squeezed);
  return match === null ? null : bytesOf(match[1] ?? "", match[2] ?? "");
}

function causeOf(squeezed: string): TorchMessage["cause"] {
  if (/\(VSZ\)exhaustionfromexpandable/.test(squeezed)) {
    return "address space";
  }
  if (/preemptivelyrejected/.test(squeezed)) {
    return "own limit";
  }
  if (/Triedtoallocatemorethan1EB/.test(squeezed)) {
    return "size beyond all";
  }
  return "device";
}

/** Versions whose messages name PYTORCH_ALLOC_CONF. */
export const NAMED_ANEW = "2.9 or later";

function versionOf(squeezed: string, body: string, reservedInTotal: boolean): string {
  if (body === "") {
    return "";
  }
  if (/(?:NPU|MLU|MUSA)outofmemory/.test(squeezed)) {
    return "";
  }
  if (/(?:iB|bytes)cached\)/.test(body)) {
    return "up to 1.3";
  }
  if (reservedInTotal) {
    return "1.4 to 2.0";
  }
  if (/totalcapactyof/.test(body)) {
    return "2.1";
  }
  if (/PYTORCH_ALLOC_CONF/.test(body)) {
    return NAMED_ANEW;
  }
  if (/#optimizing-memory-usage/.test(body)) {
    return "2.10 or later";
  }
  // ROCm builds call it PYTORCH_HIP_ALLOC_CONF in versions that rewrite the name in the source.
  if (/HIPoutofmemory.*PYTORCH_CUDA_ALLOC_CONF=.*#environment-variables/.test(squeezed)) {
    return NAMED_ANEW;
  }
  if (/torch\.OutOfMemoryError/.test(squeezed)) {
    return /#environment-variables/.test(body) ? "2.5 to 2.8" : "2.5 or later";
  }
  if (/torch\.cuda\.OutOfMemoryError/.test(squeezed)) {
    return "2.2 to 2.4";
  }
  return /totalcapacityof/.test(body) ? "2.2 or later" : "";
}
