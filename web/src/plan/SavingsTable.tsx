/** The memory that each technique would save. */
import type { PlanJson } from "../../../src/model/documents/plan_document.js";
import { formatBytes, formatCount } from "../format/numbers.js";

export function SavingsTable({ plan }: { plan: PlanJson }) {
  return (
    <section className="panel" aria-label="Savings">
      <div className="plan-scroll">
        <table className="plan-table">
          <caption>
            <span>
              Memory that each technique would save, or room that it would add, if it were the only
              change
            </span>
          </caption>
          <thead>
            <tr>
              <th>Technique</th>
              <th className="number">
                {plan.savings.some(({ addedTokens }) => addedTokens !== undefined)
                  ? "Adds"
                  : "Saves"}
              </th>
              <th>Cost</th>
              <th>Change</th>
              <th>In the program</th>
            </tr>
          </thead>
          <tbody>
            {plan.savings.map(({ technique, bytes, addedTokens, cost, change, program }) => (
              <tr key={technique}>
                <th scope="row">{technique}</th>
                <td className="number">
                  {addedTokens === undefined
                    ? formatBytes(bytes)
                    : `${formatCount(addedTokens)} tokens of cache`}
                </td>
                <td>{cost}</td>
                <td>
                  <code>{change}</code>
                </td>
                <td>
                  <code>{program}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
