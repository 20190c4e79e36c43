/** The plan of the command compared with a measurement, part by part. The sliders do not change it. */
import type { PlanComparisonJson } from "../../../src/model/documents/plan_document.js";
import { comparedWords } from "../../../src/plan/wording.js";
import { formatBytes } from "../format/numbers.js";

export function Comparison({ comparison }: { comparison: PlanComparisonJson }) {
  const { file, parts, explanation } = comparison;
  return (
    <section className="panel plan-notes" aria-label="Comparison">
      <p>
        The plan as the command made it, compared with {file}: <b>{comparedWords(comparison)}</b>
      </p>
      {parts.length > 0 && (
        <div className="plan-scroll">
          <table className="plan-table">
            <thead>
              <tr>
                <th>Part</th>
                <th className="number">Planned</th>
                <th className="number">Measured</th>
              </tr>
            </thead>
            <tbody>
              {parts.map(({ part, plannedBytes, measuredBytes }) => (
                <tr key={part}>
                  <th scope="row">{part}</th>
                  <td className="number">{formatBytes(plannedBytes)}</td>
                  <td className="number">{formatBytes(measuredBytes)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p>{explanation}</p>
    </section>
  );
}
