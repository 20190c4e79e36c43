/** What kind a message of PyTorch's allocator is, by its own figures. */
import type { Bytes } from "../../model/units.js";
import type { ConfName, GpuAdviceId } from "../advice.js";
import { sizeText } from "./message_sizes.js";
import type { OomFigures, OomVerdict } from "./oom_reading.js";
import { NAMED_ANEW, type TorchMessage } from "./torch_message.js";

/** What a context takes anyway; above this share of the device it is worth a word. */
const NOTABLE_SHARE = 0.1;
/** With less than this in pieces the device is full, however they lie. */
const LARGE_SPLIT = 0.02;
/** The allocator asks the driver for 2 or 20 MiB at least, and a driver keeps pages of its own: a device with less
 * than that free is full, and where no more than that is free beyond the request, it need not have been enough. */
const SEGMENT: Bytes = 20 * 2 ** 20;
/** What others hold by far outweighs what lies in pieces: from here on they are the reason. */
const CROWDED_SHARE = 0.2;
const CROWDED_TIMES = 4;

/** A message that says itself what it is, whatever figures it has; else by its figures. */
export function judgeTorchMessage(message: TorchMessage): OomVerdict {
  const request = message.requestedBytes;
  switch (message.cause) {
    case "address space":
      return {
        kind: "unknown",
        because: "the process ran out of addresses that expandable segments reserve, not of memory",
        advice: ["TM-A125"],
      };
    case "own limit":
      return ownLimit(
        `${request === null ? "the request" : sizeText(request)} would go beyond the share of the device that the program set for itself (per_process_memory_fraction)`,
      );
    case "size beyond all":
      return {
        kind: "genuine",
        because:
          "more than an exabyte was asked for: a size that was computed wrong, or below zero",
        advice: [],
      };
    default:
      return request === null
        ? {
            kind: "unknown",
            because:
              "the message is cut: PyTorch's allocator found no memory, and its figures are missing",
            advice: ["TM-A115", "TM-A108"],
          }
        : judgeRequest(message, request);
  }
}

/** The setting by the name that the message's version has for it. */
export function confName({ platform, torch: version }: TorchMessage): ConfName {
  if (platform === "HIP") return "PYTORCH_HIP_ALLOC_CONF";
  return version === NAMED_ANEW ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF";
}

/** All that is known when the message was written; what the program has of its own allocator. */
interface State {
  readonly request: Bytes;
  readonly total: Bytes;
  readonly free: Bytes;
  readonly allocated: Bytes;
  readonly split: Bytes;
  /** 0 where as much was free as was asked for, or all but that. */
  readonly missing: Bytes;
  readonly others: Bytes;
  readonly outside: Bytes;
}

function judgeRequest(message: TorchMessage, request: Bytes): OomVerdict {
  const { totalBytes: total, freeBytes: free, allowedBytes: allowed } = message;
  const { allocatedBytes: allocated, reservedUnallocatedBytes: split } = message;
  if (allowed !== null) {
    const limited = judgeLimit(message, request, allowed);
    if (limited !== null) return limited;
  }
  if (allocated !== null && total !== null && allocated > total) {
    return {
      kind: "genuine",
      because: `PyTorch has ${sizeText(allocated)} allocated on a device of ${sizeText(total)}: the driver has moved a part to the host's memory already; ${sizeText(request)} more was asked for`,
      advice: ["TM-A115", "TM-A104"],
    };
  }
  if (total !== null && request > total) {
    return {
      kind: "genuine",
      because: `${sizeText(request)} was asked for at once, and the device has ${sizeText(total)} in all`,
      advice: ["TM-A115", "TM-A104"],
    };
  }
  if (total === null || free === null) {
    return {
      kind: "unknown",
      because: "the message says too little to tell: not what is free",
      advice: [],
    };
  }
  if (free >= SEGMENT && free >= request + SEGMENT) return enoughFree(request, free);
  if (allocated === null || split === null) {
    return {
      kind: "unknown",
      because: `the message is cut: ${sizeText(request)} was asked for, ${sizeText(free)} of ${sizeText(total)} is free, and it does not say what PyTorch holds itself`,
      advice: ["TM-A108", "TM-A115"],
    };
  }
  return judgeState(message, stateOf(message, { request, total, free, allocated, split }));
}

/** The program's own limit is what refuses, where the device would have had enough or the sum goes beyond it. */
function judgeLimit(message: TorchMessage, request: Bytes, allowed: Bytes): OomVerdict | null {
  const { allocatedBytes: allocated, reservedUnallocatedBytes: split, freeBytes: free } = message;
  if (request > allowed) {
    return ownLimit(
      `${sizeText(request)} was asked for at once, and the program allows itself ${sizeText(allowed)} in all`,
    );
  }
  if (allocated === null || split === null) {
    return free !== null && free >= request
      ? ownLimit(
          `the program allows itself ${sizeText(allowed)}, and asked for ${sizeText(request)}; the device had ${sizeText(free)} free`,
        )
      : null;
  }
  const held = allocated + split;
  const over = held + request - allowed;
  if (over <= 0 && (free === null || free < request)) return null;
  if (over > 0 && split >= over && split >= NOTABLE_SHARE * held) {
    return {
      kind: "fragmentation",
      because: `the program allows itself ${sizeText(allowed)}: ${sizeText(allocated)} is allocated and ${sizeText(split)} reserved in pieces, too small each for ${sizeText(request)}`,
      advice: [...ofFragmentation(message, split), "TM-A126"],
    };
  }
  return ownLimit(
    `the program allows itself ${sizeText(allowed)}, holds ${sizeText(held)} and asked for ${sizeText(request)} more${free === null ? "" : `; the device had ${sizeText(free)} free`}`,
  );
}

function ownLimit(because: string): OomVerdict {
  return { kind: "genuine", because, advice: ["TM-A126", "TM-A115"] };
}

function enoughFree(request: Bytes, free: Bytes): OomVerdict {
  if (free < request + SEGMENT) {
    return {
      kind: "unknown",
      because: `${sizeText(request)} was asked for and ${sizeText(free)} was free: all but the same, and the driver keeps pages of its own`,
      advice: ["TM-A115", "TM-A108"],
    };
  }
  return {
    kind: "unknown",
    because: `${sizeText(free)} was free when the message was written, and ${sizeText(request)} asked for: another process may have held it a moment before, or the driver refuses what is there`,
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
    // "Process N" may be this very one, when it runs in a container: then nothing else says its size.
    others: figures.processBytes === null ? rest : Math.max(listed, rest),
    outside: figures.processBytes === null ? 0 : Math.max(0, own - allocated - split),
  };
}

/**
 * Before it raises, PyTorch gives every segment back in which nothing lives. What is still reserved but
 * unallocated lies in pieces between live blocks: it is cache no longer.
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
      because: `${sizeText(split)} is reserved and unallocated, ${sizeText(free)} is free: together enough for ${sizeText(request)}, but not in one piece`,
      advice: ofFragmentation(message, split),
    };
  }
  if (outside >= missing && outside >= notable && outside > others) return context(state);
  if (missing === 0) return enoughFree(request, free);
  if (others >= missing && others >= notable && others > outside) return contention(message, state);
  if (outside >= missing && outside >= notable) return context(state);
  return {
    kind: "genuine",
    because: `PyTorch has ${sizeText(allocated)} of ${sizeText(total)} in use; ${sizeText(request)} more was asked for, ${sizeText(free)} is free and only ${sizeText(split)} is reserved and unused`,
    advice: ["TM-A115", "TM-A104"],
  };
}

/** Whether others are the reason, however much lies in pieces. */
function crowded({ processBytes }: OomFigures, { total, split, others, outside }: State): boolean {
  return processBytes === null
    ? others >= CROWDED_SHARE * total && others >= CROWDED_TIMES * split
    : others > split && others > outside;
}

/** Enough for the request by itself, or a good part of all that PyTorch holds, or far more than was missing. */
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

/** Expandable segments came with 2.1; what a version does not know ends every CUDA call with an error. */
function ofFragmentation(message: TorchMessage, split: Bytes): GpuAdviceId[] {
  const { torch, platform, splitNamed } = message;
  if (platform === "XPU" || platform === "other") return ["TM-A131"];
  if (torch === "up to 1.3") return ["TM-A130", "TM-A131"];
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
    because: `this process holds ${sizeText(allocated + split + outside)}, of which PyTorch's allocator has ${sizeText(allocated + split)}: ${sizeText(outside)} is the CUDA context, NCCL and other libraries`,
    advice: ["TM-A109"],
  };
}

function contention(figures: OomFigures, { others, missing }: State): OomVerdict {
  const named = figures.otherProcesses
    .map(({ pid, bytes }) => `process ${pid} ${sizeText(bytes)}`)
    .join(", ");
  const own = figures.processBytes !== null;
  const who =
    named === ""
      ? "processes or libraries that the message does not name"
      : own
        ? named
        : `one of these is this process: ${named}`;
  return {
    kind: "contention",
    because: `${sizeText(others)} of the device is held by others (${who}); ${sizeText(missing)} was missing`,
    advice: ["TM-A108", ...(own ? [] : (["TM-A109"] as const))],
  };
}
