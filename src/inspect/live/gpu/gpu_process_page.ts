/** The page of a running program's torch allocator: `tidemark gpu PID -o F.html`. */

import { pageDocument } from "../../../gpu/analysis/page_document.js";
import type { FrameworkFigures } from "../../../gpu/devices/device_figures.js";
import { readSnapshot } from "../../../gpu/snapshot/read_snapshot.js";
import type { Pid } from "../../../model/base/units.js";
import type { GpuPageDocument } from "../../../model/documents/gpu/gpu_page.js";
import { noDeviceSnapshot } from "../../../model/errors/device_errors.js";
import type { TidemarkError } from "../../../model/errors/errors.js";
import { readDeviceSnapshot } from "../../../record/index.js";
import { unusedText } from "./gpu_framework_state.js";
import type { EntryOptions } from "./gpu_process.js";

/** Throws TidemarkError if the program cannot be queried or does not use torch's allocator. */
export async function gpuProcessPage(pid: Pid, exec: EntryOptions): Promise<GpuPageDocument> {
  const name = `process ${pid}`;
  const { answer, frameworks, refused } = await readDeviceSnapshot(pid, exec, async (path) =>
    pageDocument(await readSnapshot(path), name, name),
  );
  if (answer === null) {
    throw refusal(pid, frameworks, refused);
  }
  return answer;
}

function refusal(
  pid: Pid,
  frameworks: readonly FrameworkFigures[],
  refused: string,
): TidemarkError {
  const torch = frameworks.find(({ name }) => name === "torch");
  if (torch?.state === "used") {
    return noDeviceSnapshot(pid, refused, `to see its figures without a page: tidemark gpu ${pid}`);
  }
  const jax = frameworks.find(({ name, state }) => name === "jax" && state === "used");
  if (jax !== undefined) {
    const profile = `to write JAX's own profile, for pprof: tidemark gpu ${pid} -o devices.pb.gz`;
    return noDeviceSnapshot(pid, "it uses JAX, which has no such page", profile);
  }
  return noDeviceSnapshot(
    pid,
    torch === undefined ? "it has not loaded torch" : unusedText(torch),
    `try again once it uses a device; until then: tidemark gpu ${pid}`,
  );
}
