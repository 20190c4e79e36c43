/** Verdicts on the messages of the table (message_table.ts) that depend on their figures. */
import { formatBytesLikePyTorch } from "../../../model/base/numbers.js";
import type { Bytes } from "../../../model/base/units.js";
import type { GpuAdviceId } from "../../analysis/advice.js";
import { credible } from "./message_sizes.js";
import type { OomFigures, OomReading, OomVerdict } from "./oom_reading.js";

/** The groups that matched in a message. */
export interface Found {
  /** A group as printed; "" if it did not match. */
  readonly text: (name: string) => string;
  readonly bytes: (name: string) => Bytes | null;
  /** The same as text, "1.50 GiB"; "" if it did not match. */
  readonly size: (name: string) => string;
}

export function genuine(because: string, advice: readonly GpuAdviceId[]): OomVerdict {
  return { kind: "genuine", because, advice };
}

/** No device is as large as this: the size was computed wrong. */
const NO_DEVICE = 2 ** 44;

/** The verdict on a message that reports at most the request and the free memory. */
export function judgeFigures({
  requestedBytes: request = null,
  freeBytes: free = null,
}: Partial<OomFigures>): OomVerdict {
  if (request !== null && request >= NO_DEVICE) {
    return {
      kind: "genuine",
      because: `${formatBytesLikePyTorch(request)} was requested, more than any device has: the size was computed wrong`,
      advice: [],
    };
  }
  if (request !== null && free !== null && free < request) {
    return {
      kind: "genuine",
      because: `${formatBytesLikePyTorch(request)} was requested, but only ${formatBytesLikePyTorch(free)} is free`,
      advice: ["TM-A108", "TM-A129"],
    };
  }
  return {
    kind: "unknown",
    because:
      request === null
        ? "the message has no figures"
        : `${formatBytesLikePyTorch(request)} was requested; the message does not report the memory of the device, or what uses it`,
    advice: ["TM-A108", "TM-A129"],
  };
}

/** Metal limits the sum of what PyTorch allocated and the `other` allocations of the process. */
export function judgeMetal({ bytes, size }: Found): OomVerdict {
  const [allocated, other] = [bytes("allocatedBytes") ?? 0, bytes("other") ?? 0];
  const request = bytes("requestedBytes");
  const missing = allocated + other + (request ?? 0) - (bytes("allowedBytes") ?? 0);
  const outside = other >= missing && other > allocated;
  return {
    kind: outside ? "context" : "genuine",
    because: `${size("allocatedBytes")} of tensors and ${size("other")} of other allocations are in use; ${request === null ? "the request" : `${size("requestedBytes")} more`} would exceed the ${size("allowedBytes")} that Metal allows`,
    advice: ["TM-A115", "TM-A123"],
  };
}

/** Memory spaces of a TPU other than hbm (vmem, smem, cmem) are a core's scratch memory, and no batch size changes
 * them. */
export function memoryOfSpace({ text }: Found): OomReading["memory"] {
  return ["", "hbm"].includes(text("space")) ? "device" : "scratch";
}

/** A program that XLA's compiler rejected never ran: the figure is that of the whole program. */
export function judgeCompiled(found: Found): OomVerdict {
  const { text, size, bytes } = found;
  if (memoryOfSpace(found) === "device") {
    return compiled(bytes("requestedBytes") ?? 0, size("totalBytes"));
  }
  const beyond = text("over") === "" ? "" : `: ${size("over")} more is needed`;
  return genuine(
    `a kernel needs ${size("requestedBytes")} of ${text("space")}, the scratch memory of a core, which has ${size("totalBytes")}${beyond}`,
    ["TM-A128"],
  );
}

export function compiled(used: Bytes, limit: string): OomVerdict {
  return genuine(
    `the compiled program needs ${formatBytesLikePyTorch(used)}, but the device has ${limit} for it`,
    ["TM-A127"],
  );
}

/** A TPU belongs to one process at a time: memory that is not free is used by this program. */
export function judgeTpuBuffer({ text, bytes, size }: Found): OomVerdict {
  const where = text("chip") === "" ? "" : ` on the chip ${text("chip")}`;
  const [request, free] = [bytes("requestedBytes") ?? 0, bytes("freeBytes")];
  const advice = ["TM-A127"] as const;
  if (free === null) {
    return { kind: "unknown", because: "the message is truncated before the free memory", advice };
  }
  if (free >= request) {
    return {
      kind: "fragmentation",
      because: `${size("freeBytes")} is free${where} and ${size("requestedBytes")} was requested: no free block was large enough, or none was at the address that a program requires`,
      advice,
    };
  }
  return genuine(
    `${size("requestedBytes")} was requested${where}, but only ${size("freeBytes")} is free: the rest is used by arrays and compiled programs of this process`,
    advice,
  );
}

/** PyTorch prints a limit of 17179869184.00 GiB where none is set. */
export function figuresOfAsync({ bytes }: Found): Partial<OomFigures> {
  const [total, limit] = [credible(bytes("totalBytes")), credible(bytes("limit"))];
  return {
    totalBytes: total,
    freeBytes: credible(bytes("freeBytes")),
    allocatedBytes: credible(bytes("allocatedBytes")),
    allowedBytes: limit !== null && total !== null && limit < total ? limit : null,
  };
}

/** The CUDA context and the rounding of a pool take less than this share of a device. */
const NOTABLE_SHARE = 0.15;

/**
 * Of backend:cudaMallocAsync, the driver's own pools. The allocated bytes are those that PyTorch requested, not
 * those that the driver's pool holds: the rest of the device is the pool's unused part, the CUDA context and other
 * processes together.
 */
export function judgeAsync(_: Found, figures: Partial<OomFigures>): OomVerdict {
  const {
    requestedBytes: request = null,
    totalBytes: total = null,
    freeBytes: free = null,
  } = figures;
  const { allocatedBytes: allocated = null, allowedBytes: allowed = null } = figures;
  if (request === null || total === null || free === null || allocated === null) {
    return { kind: "unknown", because: "the message is truncated: it has no figures", advice: [] };
  }
  if (allowed !== null && allocated + request > allowed) {
    return {
      kind: "genuine",
      because: `the program allows itself ${formatBytesLikePyTorch(allowed)}, holds ${formatBytesLikePyTorch(allocated)} and requested ${formatBytesLikePyTorch(request)} more`,
      advice: ["TM-A115", "TM-A126"],
    };
  }
  if (request > total || allocated > total) {
    return {
      kind: "genuine",
      because: `PyTorch uses ${formatBytesLikePyTorch(allocated)} and requested ${formatBytesLikePyTorch(request)}; the device has ${formatBytesLikePyTorch(total)}`,
      advice: ["TM-A115", "TM-A104"],
    };
  }
  if (free >= request) {
    return {
      kind: "unknown",
      because: `${formatBytesLikePyTorch(free)} was free when the message was written, and ${formatBytesLikePyTorch(request)} was requested`,
      advice: ["TM-A108"],
    };
  }
  const rest = total - free - allocated;
  const missing = request - free;
  return rest >= missing && rest >= NOTABLE_SHARE * total
    ? {
        kind: "contention",
        because: `PyTorch uses ${formatBytesLikePyTorch(allocated)} of ${formatBytesLikePyTorch(total)}; other processes, the CUDA context and the unused part of the driver's pool hold ${formatBytesLikePyTorch(rest)}; ${formatBytesLikePyTorch(missing)} was missing`,
        advice: ["TM-A108", "TM-A109"],
      }
    : {
        kind: "genuine",
        because: `PyTorch uses ${formatBytesLikePyTorch(allocated)} of ${formatBytesLikePyTorch(total)}; ${formatBytesLikePyTorch(request)} more was requested, and ${formatBytesLikePyTorch(free)} is free`,
        advice: ["TM-A115", "TM-A104"],
      };
}
