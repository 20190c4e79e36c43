/** One stacked bar against the device's memory, and a row for each part with its formula. */
import type { PlanJson, PlanPartName } from "../../../src/model/documents/plan_document.js";
import { partWords } from "../../../src/plan/wording.js";
import { formatBytes, formatShare } from "../format/numbers.js";

const COLOURS: Readonly<Record<PlanPartName, string>> = {
  weights: "#2b93a8",
  adapters: "#59b8c9",
  gradients: "#dd9639",
  optimizer: "#8f78c9",
  activations: "#5f8a1e",
  "head and loss": "#a0b93a",
  temporaries: "#c9a227",
  communication: "#b06a9b",
  nccl: "#d3a9c6",
  workspace: "#7d8a92",
  "kv cache": "#3f7fbf",
  "unused kv cache": "#a9c6e3",
  fragmentation: "#b4bcc1",
  "cuda graphs": "#c0705a",
  "cuda context": "#5c6870",
};

export function PartBars({ plan }: { plan: PlanJson }) {
  const { parts, perDeviceBytes, devices, peak } = plan;
  const whole = Math.max(perDeviceBytes, devices.memoryBytes);
  return (
    <section className="panel" aria-label="Parts">
      <div
        className="plan-bar"
        role="img"
        aria-label={`${formatBytes(perDeviceBytes)} of ${formatBytes(devices.memoryBytes)}`}
      >
        {parts.map(({ part, bytes }) => (
          <i
            key={part}
            style={{ width: `${(100 * bytes) / whole}%`, background: COLOURS[part] }}
            title={`${partWords(part, devices)}: ${formatBytes(bytes)}`}
          />
        ))}
        <b
          style={{ left: `${(100 * devices.memoryBytes) / whole}%` }}
          title="memory of the device"
        />
      </div>
      <div className="plan-scroll">
        <table className="plan-table">
          <caption>At the peak: {peak}</caption>
          <thead>
            <tr>
              <th>Part</th>
              <th className="number">Bytes</th>
              <th className="number">Share</th>
              <th>Interval</th>
              <th>Formula</th>
              <th className="plan-source">Source</th>
            </tr>
          </thead>
          <tbody>
            {parts.map(({ part, bytes, low, high, formula, source }) => (
              <tr key={part}>
                <th scope="row">
                  <i className="plan-key" style={{ background: COLOURS[part] }} />
                  {partWords(part, devices)}
                </th>
                <td className="number">{formatBytes(bytes)}</td>
                <td className="number">{formatShare(bytes / perDeviceBytes)}</td>
                <td className="plan-interval">
                  {formatBytes(low)} to {formatBytes(high)}
                </td>
                <td>{formula}</td>
                <td className="plan-source">{source}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
