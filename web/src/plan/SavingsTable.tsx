/** The memory that each technique would save. */
import type { PlanJson } from "../../../src/model/documents/plan_document.js";
import { formatBytes } from "../format/numbers.js";

export function SavingsTable({ plan }: { plan: PlanJson }) {
  return (
    <section className="panel" aria-label="Savings">
      <div className="plan-scroll">
        <table className="plan-table">
          <caption>Memory that each technique would save if it were the only change</caption>
          <thead>
            <tr>
              <th>Technique</th>
              <th className="number">Saves</th>
              <th>Cost</th>
              <th>Change</th>
            </tr>
          </thead>
          <tbody>
            {plan.savings.map(({ technique, bytes, cost, change }) => (
              <tr key={technique}>
                <th scope="row">{technique}</th>
                <td className="number">{formatBytes(bytes)}</td>
                <td>{cost}</td>
                <td>
                  <code>{change}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
