/** The verdict on a message of PyTorch's allocator, from its own figures. */
import { formatBytesLikePyTorch } from "../../../model/base/numbers.js";
import type { Bytes } from "../../../model/base/units.js";
import type { ConfName, GpuAdviceId } from "../../analysis/advice.js";
import type { OomFigures, OomVerdict } from "./oom_reading.js";
import { NAMED_ANEW, type TorchMessage } from "./torch_message.js";

/** A CUDA context usually takes less than this share of the device. */
const NOTABLE_SHARE = 0.1;
/** With a smaller share than this in free pieces, the device is full. */
const LARGE_SPLIT = 0.02;
/**
 * The allocator requests at least 2 or 20 MiB from the driver, and the driver keeps some pages for itself. A
 * device with less free memory is full, and if the free memory exceeds the request by less than this, it may
 * not have been enough.
 */
const SEGMENT: Bytes = 20 * 2 ** 20;
/** Above these values, the memory of other processes far exceeds the free pieces and is the cause. */
const CROWDED_SHARE = 0.2;
const CROWDED_TIMES = 4;

/** From the cause in the message, if any, otherwise from its figures. */
export function judgeTorchMessage(message: TorchMessage): OomVerdict {
  const request = message.requestedBytes;
  switch (message.cause) {
    case "address space":
      return {
        kind: "unknown",
        because:
          "the process ran out of address space, which expandable segments reserve, not of memory",
        advice: ["TM-A125"],
      };
    case "own limit":
      return ownLimit(
        `${request === null ? "the request" : formatBytesLikePyTorch(request)} would exceed the share of the device that the program set for itself (per_process_memory_fraction)`,
      );
    case "size beyond all":
      return {
        kind: "genuine",
        because: "more than an exabyte was requested: the size was computed wrong, or is negative",
        advice: [],
      };
    default:
      return request === null
        ? {
            kind: "unknown",
            because:
              "the message is truncated: PyTorch's allocator could not allocate memory, and the figures are missing",
            advice: ["TM-A115", "TM-A108"],
          }
        : judgeRequest(message, request);
  }
}

/** The name of the allocator setting in the version that wrote the message. */
export function confName({ platform, torch: version }: TorchMessage): ConfName {
  if (platform === "HIP") {
    return "PYTORCH_HIP_ALLOC_CONF";
  }
  return version === NAMED_ANEW ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF";
}

/** The state of the device and of PyTorch's allocator when the message was written. */
interface State {
  readonly request: Bytes;
  readonly total: Bytes;
  readonly free: Bytes;
  readonly allocated: Bytes;
  readonly split: Bytes;
  /** The part of the request that was not free; 0 if enough was free. */
  readonly missing: Bytes;
  readonly others: Bytes;
  readonly outside: Bytes;
}

function judgeRequest(message: TorchMessage, request: Bytes): OomVerdict {
  const { totalBytes: total, freeBytes: free, allowedBytes: allowed } = message;
  const { allocatedBytes: allocated, reservedUnallocatedBytes: split } = message;
  if (allowed !== null) {
    const limited = judgeLimit(message, request, allowed);
    if (limited !== null) {
      return limited;
    }
  }
  if (allocated !== null && total !== null && allocated > total) {
    return {
      kind: "genuine",
      because: `PyTorch has ${formatBytesLikePyTorch(allocated)} allocated on a device of ${formatBytesLikePyTorch(total)}: the driver has already moved a part to the host's memory; ${formatBytesLikePyTorch(request)} more was requested`,
      advice: ["TM-A115", "TM-A104"],
    };
  }
  if (total !== null && request > total) {
    return {
      kind: "genuine",
      because: `${formatBytesLikePyTorch(request)} was requested at once, but the device has ${formatBytesLikePyTorch(total)} in total`,
      advice: ["TM-A115", "TM-A104"],
    };
  }
  if (total === null || free === null) {
    return {
      kind: "unknown",
      because: "the message does not report the free memory",
      advice: [],
    };
  }
  if (free >= SEGMENT && free >= request + SEGMENT) {
    return enoughFree(request, free);
  }
  if (allocated === null || split === null) {
    return {
      kind: "unknown",
      because: `the message is truncated: ${formatBytesLikePyTorch(request)} was requested, ${formatBytesLikePyTorch(free)} of ${formatBytesLikePyTorch(total)} is free, and the memory that PyTorch holds is missing`,
      advice: ["TM-A108", "TM-A115"],
    };
  }
  return judgeState(message, stateOf(message, { request, total, free, allocated, split }));
}

/** The program's own limit is the cause if the device had enough free memory, or if the sum exceeds the limit. */
function judgeLimit(message: TorchMessage, request: Bytes, allowed: Bytes): OomVerdict | null {
  const { allocatedBytes: allocated, reservedUnallocatedBytes: split, freeBytes: free } = message;
  if (request > allowed) {
    return ownLimit(
      `${formatBytesLikePyTorch(request)} was requested at once, but the program allows itself ${formatBytesLikePyTorch(allowed)} in total`,
    );
  }
  if (allocated === null || split === null) {
    return free !== null && free >= request
      ? ownLimit(
          `the program allows itself ${formatBytesLikePyTorch(allowed)} and requested ${formatBytesLikePyTorch(request)}; the device had ${formatBytesLikePyTorch(free)} free`,
        )
      : null;
  }
  const held = allocated + split;
  const over = held + request - allowed;
  if (over <= 0 && (free === null || free < request)) {
    return null;
  }
  if (over > 0 && split >= over && split >= NOTABLE_SHARE * held) {
    return {
      kind: "fragmentation",
      because: `the program allows itself ${formatBytesLikePyTorch(allowed)}: ${formatBytesLikePyTorch(allocated)} is allocated, and ${formatBytesLikePyTorch(split)} is reserved in pieces that are each too small for ${formatBytesLikePyTorch(request)}`,
      advice: [...ofFragmentation(message, split), "TM-A126"],
    };
  }
  return ownLimit(
    `the program allows itself ${formatBytesLikePyTorch(allowed)}, holds ${formatBytesLikePyTorch(held)} and requested ${formatBytesLikePyTorch(request)} more${free === null ? "" : `; the device had ${formatBytesLikePyTorch(free)} free`}`,
  );
}

function ownLimit(because: string): OomVerdict {
  return { kind: "genuine", because, advice: ["TM-A126", "TM-A115"] };
}

function enoughFree(request: Bytes, free: Bytes): OomVerdict {
  if (free < request + SEGMENT) {
    return {
      kind: "unknown",
      because: `${formatBytesLikePyTorch(request)} was requested and ${formatBytesLikePyTorch(free)} was free: about the same, and the driver keeps some pages for itself`,
      advice: ["TM-A115", "TM-A108"],
    };
  }
  return {
    kind: "unknown",
    because: `${formatBytesLikePyTorch(free)} was free when the message was written, and ${formatBytesLikePyTorch(request)} was requested: another process may have used it a moment before, or the driver refused it although it was free`,
    advice: ["TM-A108"],
  };
}

function stateOf(
  figures: OomFigures,
  known: Pick<State, "request" | "total" | "free" | "allocated" | "split">,
): State {
  const { request, total, free, allocated, split } = known;
  const usable = free < SEGMENT ? 0 : free;
  const own = figures.processBytes ?? allocated + split;
  const listed = figures.otherProcesses.reduce((sum, { bytes }) => sum + bytes, 0);
  const rest = Math.max(0, total - free - own);
  return {
    ...known,
    missing: Math.max(0, request - usable),
    // "Process N" may be this process if it runs in a container: nothing else then reports its size.
    others: figures.processBytes === null ? rest : Math.max(listed, rest),
    outside: figures.processBytes === null ? 0 : Math.max(0, own - allocated - split),
  };
}

/**
 * Before it raises the error, PyTorch frees every segment without live blocks. Memory that is still reserved
 * but unallocated lies in pieces between live blocks: it is not cache any more.
 */
function judgeState(message: TorchMessage, state: State): OomVerdict {
  const { request, total, free, allocated, split, missing, others, outside } = state;
  const notable = NOTABLE_SHARE * total;
  if (missing > 0 && others >= missing && others >= notable && crowded(message, state)) {
    return contention(message, state);
  }
  if (inPieces(state)) {
    return {
      kind: "fragmentation",
      because: `${formatBytesLikePyTorch(split)} is reserved and unallocated, and ${formatBytesLikePyTorch(free)} is free: enough for ${formatBytesLikePyTorch(request)} in total, but not in one piece`,
      advice: ofFragmentation(message, split),
    };
  }
  if (outside >= missing && outside >= notable && outside > others) {
    return context(state);
  }
  if (missing === 0) {
    return enoughFree(request, free);
  }
  if (others >= missing && others >= notable && others > outside) {
    return contention(message, state);
  }
  if (outside >= missing && outside >= notable) {
    return context(state);
  }
  return {
    kind: "genuine",
    because: `PyTorch uses ${formatBytesLikePyTorch(allocated)} of ${formatBytesLikePyTorch(total)}; ${formatBytesLikePyTorch(request)} more was requested, ${formatBytesLikePyTorch(free)} is free and only ${formatBytesLikePyTorch(split)} is reserved and unallocated`,
    advice: ["TM-A115", "TM-A104"],
  };
}

/** Whether the memory of others is the cause, however much is free in pieces. */
function crowded({ processBytes }: OomFigures, { total, split, others, outside }: State): boolean {
  return processBytes === null
    ? others >= CROWDED_SHARE * total && others >= CROWDED_TIMES * split
    : others > split && others > outside;
}

/** Whether the free pieces would hold the request, or are a large part of PyTorch's memory, or far more than was
 * missing. */
function inPieces({ request, total, allocated, split, missing }: State): boolean {
  const held = allocated + split;
  return (
    split >= missing &&
    split >= LARGE_SPLIT * total &&
    (split >= request ||
      split >= NOTABLE_SHARE * held ||
      (split >= 2 * missing && split >= (NOTABLE_SHARE / 2) * held))
  );
}

/** Expandable segments exist from 2.1 on; a setting that a version does not know makes every CUDA call fail. */
function ofFragmentation(message: TorchMessage, split: Bytes): GpuAdviceId[] {
  const { torch, platform, splitNamed } = message;
  if (platform === "XPU" || platform === "other") {
    return ["TM-A131"];
  }
  if (torch === "up to 1.3") {
    return ["TM-A130", "TM-A131"];
  }
  if (torch === "1.4 to 2.0") {
    return splitNamed ? ["TM-A102", "TM-A130", "TM-A131"] : ["TM-A130", "TM-A131"];
  }
  return (message.privatePoolBytes ?? 0) > split
    ? ["TM-A114", "TM-A101"]
    : ["TM-A101", "TM-A103", "TM-A102"];
}

function context({ allocated, split, outside }: State): OomVerdict {
  return {
    kind: "context",
    because: `this process holds ${formatBytesLikePyTorch(allocated + split + outside)}, of which PyTorch's allocator has ${formatBytesLikePyTorch(allocated + split)}: the CUDA context, NCCL and other libraries hold the remaining ${formatBytesLikePyTorch(outside)}`,
    advice: ["TM-A109"],
  };
}

function contention(figures: OomFigures, { others, missing }: State): OomVerdict {
  const named = figures.otherProcesses
    .map(({ pid, bytes }) => `process ${pid} ${formatBytesLikePyTorch(bytes)}`)
    .join(", ");
  const own = figures.processBytes !== null;
  const who =
    named === ""
      ? "processes or libraries that the message does not name"
      : own
        ? named
        : `one of which is this process: ${named}`;
  return {
    kind: "contention",
    because: `${formatBytesLikePyTorch(others)} of the device is held by others (${who}); ${formatBytesLikePyTorch(missing)} was missing`,
    advice: ["TM-A108", ...(own ? [] : (["TM-A109"] as const))],
  };
}
