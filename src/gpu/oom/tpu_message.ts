/**
 * XLA's texts for TPUs (JAX, torch_xla). Sizes are powers of 1024 with one letter.
 *
 *   Ran out of memory in memory space hbm. Used 21.95G of 15.48G hbm. Exceeded hbm capacity by 6.47G.
 *   Error allocating device buffer: Attempting to allocate 15.65G. That was not possible. There are 11.08G free.; (0x0x0_HBM0)
 *   Attempting to reserve 6.10G at the bottom of memory. That was not possible. There are 5.40G free, 0B reserved, ...
 *   TPU TensorCore Hbm usage: 34.82G, SparseCore Hbm usage 174.10G, exceeding available bytes: 95.74G
 *   Allocation (size=21474836480) would exceed memory (size=17179869184) :: ... space=hbm
 *
 * A program that the compiler refused never ran: its figure is that of the whole program. Memory spaces
 * other than hbm (vmem, smem, cmem) are a core's scratch memory, and no batch size changes them.
 */
import { bytesOf, squeeze, XLA_SIZE } from "./message_sizes.js";
import { type OomReading, reading } from "./oom_reading.js";
import { type OomVerdict, sizeText } from "./oom_verdict.js";

export const TPU_START =
  /Ran out of memory in memory space|Error allocating device buffer|Attempting to reserve [\d.]{1,12}[KMGT] at the bottom|Hbm usage: ?[\d.]{1,12}[KMGT]|Allocation \(size=\d{1,20}\) would exceed memory/;

const SPACE = new RegExp(
  `memoryspace([a-z]{2,8})\\.Used${XLA_SIZE}of${XLA_SIZE}(?:[a-z]{2,8}\\.Exceeded[a-z]{2,8}capacityby${XLA_SIZE})?`,
);
const BUFFER = new RegExp(
  `Attemptingto(?:allocate|reserve)${XLA_SIZE}(?:atthebottomofmemory)?\\.(?:.{0,30}?Thereare${XLA_SIZE}free)?`,
);
const USAGE = new RegExp(
  `Hbmusage:${XLA_SIZE},SparseCoreHbmusage${XLA_SIZE},exceedingavailablebytes:${XLA_SIZE}`,
);
const ALLOCATION =
  /Allocation\(size=(\d{1,20})\)wouldexceedmemory\(size=(\d{1,20})\)(?:.{0,400}?space=([a-z]{2,8}))?/;

/** @param text the message and up to a few lines behind it; null where it holds none */
export function parseTpuMessage(text: string): OomReading | null {
  const squeezed = squeeze(text);
  const space = SPACE.exec(squeezed);
  if (space !== null) {
    const [, name, used, usedUnit, limit, limitUnit, over, overUnit] = space;
    const more = over === undefined ? null : bytesOf(over, overUnit!);
    return compiled(name!, bytesOf(used!, usedUnit!), bytesOf(limit!, limitUnit!), more);
  }
  const allocation = ALLOCATION.exec(squeezed);
  if (allocation !== null) {
    return compiled(allocation[3] ?? "hbm", Number(allocation[1]), Number(allocation[2]));
  }
  const usage = USAGE.exec(squeezed);
  if (usage !== null) {
    const [tensor, sparse, limit] = [1, 3, 5].map((at) => bytesOf(usage[at]!, usage[at + 1]!)) as [
      number,
      number,
      number,
    ];
    return compiled("hbm", tensor + sparse, limit);
  }
  const buffer = BUFFER.exec(squeezed);
  return buffer === null ? null : ofBuffer(buffer, squeezed);
}

function compiled(
  space: string,
  used: number,
  limit: number,
  more: number | null = null,
): OomReading {
  const scratch = space !== "hbm";
  const beyond = more === null ? "" : `, ${sizeText(more)} more than there is`;
  return reading(
    {
      kind: "genuine",
      because: scratch
        ? `a kernel needs ${sizeText(used)} of ${space}, a core's scratch memory of ${sizeText(limit)}${beyond}`
        : `the compiled program needs ${sizeText(used)}, and the device has ${sizeText(limit)} for it`,
      advice: scratch ? ["TM-A128"] : ["TM-A127"],
    },
    { requestedBytes: used, totalBytes: limit },
    { framework: "jax", memory: scratch ? "scratch" : "device" },
  );
}

function ofBuffer(match: RegExpExecArray, squeezed: string): OomReading {
  const request = bytesOf(match[1]!, match[2]!);
  const free = match[3] === undefined ? null : bytesOf(match[3], match[4]!);
  const core = /\(\d{1,4}x\d{1,4}x\d{1,4}_HBM\d\)/.exec(squeezed)?.[0] ?? "";
  return reading(
    verdictOf(request, free, core),
    { requestedBytes: request, freeBytes: free },
    {
      framework: "jax",
    },
  );
}

/** A TPU belongs to one process at a time: what is not free is this program's own. */
function verdictOf(request: number, free: number | null, core: string): OomVerdict {
  const where = core === "" ? "" : ` on the chip ${core.slice(1, -1)}`;
  if (free === null) {
    return {
      kind: "unknown",
      because: "the message is cut before it says what is free",
      advice: ["TM-A127"],
    };
  }
  if (free >= request) {
    return {
      kind: "fragmentation",
      because: `${sizeText(free)} is free${where} and ${sizeText(request)} was asked for: no piece was large enough, or not at the place where a program must lie`,
      advice: ["TM-A127"],
    };
  }
  return {
    kind: "genuine",
    because: `${sizeText(request)} was asked for${where}, and ${sizeText(free)} is free: the rest is held by this program's own arrays and programs`,
    advice: ["TM-A127"],
  };
}
