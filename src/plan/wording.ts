/** Words of a plan that the screen and the page share. */
import { formatExactCount } from "../model/base/numbers.js";
import type { PlanJson } from "../model/documents/plan_document.js";

/** "8.03 billion", "124 million", of parameters. */
export function largeCount(count: number): string {
  const millions = Number((count / 1e6).toPrecision(3));
  if (millions < 1000) {
    return `${(count / 1e6).toPrecision(3)} million`;
  }
  const billions = Number((count / 1e9).toPrecision(3));
  return `${billions < 1000 ? (count / 1e9).toPrecision(3) : formatExactCount(billions)} billion`;
}

/** Where each figure of a plan can be read while the job runs. llama.cpp has no caching allocator and no torch. */
export function measuredAs({
  serving,
}: Pick<PlanJson, "serving">): Record<keyof PlanJson["memory"], string> {
  const [allocated, reserved] =
    serving?.engine === "llama.cpp"
      ? ["the buffers in llama.cpp's log", "the same buffers, and gaps between them"]
      : ["torch.cuda.max_memory_allocated()", "torch.cuda.max_memory_reserved()"];
  return { allocated, reserved, device: "nvidia-smi, this process" };
}
