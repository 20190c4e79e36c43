/** Device memory of each process, from nvidia-smi. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Bytes, Pid } from "../model/units.js";

const QUERY = ["--query-compute-apps=pid,used_gpu_memory", "--format=csv,noheader,nounits"];
/** The driver may hang on a device that fell off the bus. */
const PATIENCE_MS = 5000;

/** By pid, summed over devices; null where no driver answers. A process whose figure the driver keeps back
 * ("[N/A]", as in containers) is left out. */
export async function readDeviceUse(): Promise<Map<Pid, Bytes> | null> {
  try {
    const { stdout } = await promisify(execFile)("nvidia-smi", QUERY, { timeout: PATIENCE_MS });
    return parseDeviceUse(stdout);
  } catch {
    return null;
  }
}

/** From lines such as "4242, 1536": pid, MiB. */
export function parseDeviceUse(text: string): Map<Pid, Bytes> {
  const use = new Map<Pid, Bytes>();
  for (const [, pid, mebibytes] of text.matchAll(/^\s*(\d+)\s*,\s*(\d+)\s*$/gm)) {
    use.set(Number(pid), (use.get(Number(pid)) ?? 0) + Number(mebibytes) * 2 ** 20);
  }
  return use;
}
