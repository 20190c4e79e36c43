import type { DiagnosisJson } from "../../../src/model/documents/diagnosis_document.js";
import { formatBytes, formatGrowth } from "../format/numbers.js";
import { partsShown } from "./words.js";

/** The change of each part of the memory, as bars from the middle on one scale. */
export function LedgerGrowth({ diagnosis }: { diagnosis: DiagnosisJson }) {
  const parts = partsShown(diagnosis.ledger);
  const most = parts.reduce((a, part) => Math.max(a, Math.abs(part.growthBytesPerHour)), 0);
  return (
    <section aria-label="Growth by part">
      <h3>Growth by part</h3>
      {parts.length === 0 ? (
        <p className="missing">No part of the memory was read.</p>
      ) : (
        <table className="growth-table">
          <thead>
            <tr>
              <th scope="col">Part</th>
              <th scope="col">Resident</th>
              <th scope="col">
                <span className="hidden">Direction</span>
              </th>
              <th scope="col">Growth</th>
            </tr>
          </thead>
          <tbody>
            {parts.map(({ part, bytes, growthBytesPerHour }) => (
              <tr key={part}>
                <th scope="row">
                  <span className={`key ledger-key ledger-${part.replace(".", "-")}`}>{part}</span>
                </th>
                <td>{formatBytes(bytes)}</td>
                <td className="direction">
                  <i
                    className={growthBytesPerHour < 0 ? "shrinks" : "grows"}
                    style={
                      {
                        "--share": most > 0 ? Math.abs(growthBytesPerHour) / most : 0,
                      } as React.CSSProperties
                    }
                  />
                </td>
                <td>{growthBytesPerHour === 0 ? "–" : formatGrowth(growthBytesPerHour)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {parts.length > 0 && most === 0 && (
        <p className="missing">No part grows on its own in this window.</p>
      )}
    </section>
  );
}
