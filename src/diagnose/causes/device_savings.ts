/** What each change would save on a device that is too small for the job, largest saving first. */

import { adviceOf, type GpuAdviceId } from "../../gpu/analysis/advice.js";
import { formatBytesBriefly } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type { AdviceJson } from "../../model/documents/diagnosis_document.js";
import type { GpuCategory, GpuDeviceJson } from "../../model/documents/gpu/gpu_document.js";

interface Saving {
  readonly id: GpuAdviceId;
  readonly of: GpuCategory;
  /** Share of the category's bytes at the peak. */
  readonly share: number;
  readonly how: string;
}

/**
 * Half the batch halves activations; 8-bit Adam replaces two states of 4 bytes by two of 1 byte; keys and
 * values of 2 bytes become 1 byte.
 */
const SAVINGS: readonly Saving[] = [
  { id: "TM-A104", of: "activations", share: 0.5, how: "half the batch" },
  { id: "TM-A105", of: "optimizer state", share: 0.75, how: "an 8-bit optimizer" },
  { id: "TM-A112", of: "kv cache", share: 0.5, how: "a cache of half the sequences, or of 8 bits" },
];
const WORTH_SHARE = 0.05;

/** Never empty. */
export function savingAdvice(device: GpuDeviceJson): AdviceJson[] {
  const { sites, requestedBytes } = device.peak;
  const held = (category: GpuCategory): Bytes =>
    sites.reduce((sum, site) => sum + (site.category === category ? site.bytes : 0), 0);
  const ranked = SAVINGS.map((saving) => ({ ...saving, bytes: held(saving.of) * saving.share }))
    .filter(({ bytes }) => bytes >= WORTH_SHARE * requestedBytes && bytes > 0)
    .sort((a, b) => b.bytes - a.bytes);
  const advice = ranked.flatMap(({ id, of, how, bytes, share }) =>
    adviceOf([id]).map(({ text }) => ({
      id,
      text: `${text} Here ${how} saves about ${formatBytesBriefly(bytes)}, of ${formatBytesBriefly(bytes / share)} of ${of}.`,
    })),
  );
  return advice.length > 0 ? advice : adviceOf(["TM-A115"]);
}
