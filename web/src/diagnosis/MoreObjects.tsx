import type { CensusJson } from "../../../src/model/documents/diagnosis_document.js";
import {
  formatBytes,
  formatDuration,
  formatExactCount,
  formatSignedBytes,
  formatSignedCount,
} from "../format/numbers.js";

/** Types that grew between the first and the last census, longest bar first. */
export function MoreObjects({ census }: { census: CensusJson }) {
  const { types, taken, fromMs, toMs } = census;
  const most = types[0]?.addedBytes ?? 0;
  return (
    <section aria-label="Objects that grew in number">
      <h3>Objects that grew in number</h3>
      <table className="growth-table">
        <thead>
          <tr>
            <th scope="col">Type</th>
            <th scope="col">Objects</th>
            <th scope="col">More</th>
            <th scope="col">Bytes</th>
            <th scope="col" className="only-grows">
              <span className="hidden">Share of the largest</span>
            </th>
            <th scope="col">More</th>
          </tr>
        </thead>
        <tbody>
          {types.map(({ type, objects, bytes, addedObjects, addedBytes }) => (
            <tr key={type}>
              <th scope="row" className="type-name">
                {type}
              </th>
              <td>{formatExactCount(objects)}</td>
              <td>{formatSignedCount(addedObjects)}</td>
              <td>{formatBytes(bytes)}</td>
              <td className="direction only-grows">
                <i
                  className="grows"
                  style={{ "--share": addedBytes / most } as React.CSSProperties}
                />
              </td>
              <td>{formatSignedBytes(addedBytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="note">
        {taken} censuses, the last {formatDuration(toMs - fromMs)} after the first; bytes with the
        buffers that the objects own.
      </p>
    </section>
  );
}
