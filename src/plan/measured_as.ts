import type { PlanJson } from "../model/documents/plan_document.js";

/** Where each figure of a plan can be read while the job runs. llama.cpp has no caching allocator and no torch. */
export function measuredAs({
  serving,
}: Pick<PlanJson, "serving">): Record<keyof PlanJson["memory"], string> {
  const [allocated, reserved] =
    serving?.engine === "llama.cpp"
      ? ["the buffers in llama.cpp's log", "the same, rounded up by the driver"]
      : ["torch.cuda.max_memory_allocated()", "torch.cuda.max_memory_reserved()"];
  return { allocated, reserved, device: "nvidia-smi, this process" };
}
