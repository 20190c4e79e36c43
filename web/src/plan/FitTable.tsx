/** Common GPUs against methods: the largest batch, and the longest sequence. */
import type { PlanFitJson } from "../../../src/model/documents/plan_document.js";
import { mostOf } from "../../../src/plan/wording.js";
import { formatBytes } from "../format/numbers.js";

/** In rem; the column of devices stays in sight while the others are scrolled on a phone. */
const DEVICE_WIDTH = 7;
const METHOD_WIDTH = 4.5;
/** So many columns of methods fit on a phone. */
const NARROW_METHODS = 3;
/** Where a narrow column may break a long word. */
const SOFT_HYPHEN = "\u00ad";

export function FitTable({
  rows,
  isTraining,
  readsText,
  longest,
}: {
  rows: readonly PlanFitJson[];
  isTraining: boolean;
  readsText: boolean;
  /** What the model was made for; 0: not known. */
  longest: number;
}) {
  const methods = [...new Set(rows.map(({ method }) => method))];
  const devices = [...new Set(rows.map(({ device }) => device))];
  return (
    <section className="panel" aria-label="What fits">
      <div className="plan-scroll">
        <table
          className="plan-table plan-fits"
          style={{ minWidth: `${DEVICE_WIDTH + METHOD_WIDTH * methods.length}rem` }}
        >
          <caption>
            <span>
              {isTraining
                ? `Largest batch that fits${readsText ? " at this length" : ""}`
                : "Concurrent sequences of this length that fit"}
              . Shaded: the plan fits as it is.
              {readsText ? (
                <span className="plan-pointer"> Point at a cell for the longest sequence.</span>
              ) : null}
              {methods.length > NARROW_METHODS ? (
                <b className="plan-wider"> Scroll sideways for all {methods.length} methods →</b>
              ) : null}
            </span>
          </caption>
          <thead>
            <tr>
              <th>GPU</th>
              {methods.map((method) => (
                <th key={method} className="plan-method">
                  {method.replace("checkpointing", `check${SOFT_HYPHEN}pointing`)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {devices.map((device) => {
              const own = rows.filter((row) => row.device === device);
              return (
                <tr key={device}>
                  <th scope="row">
                    {device} <small>{formatBytes(own[0]?.deviceBytes ?? 0)}</small>
                  </th>
                  {own.map(({ method, maxBatch, maxSequence, fits }) => (
                    <td
                      key={method}
                      className={fits ? "number plan-fits-yes" : "number plan-fits-no"}
                      title={
                        readsText && maxSequence > 0
                          ? `longest sequence ${mostOf(maxSequence, longest)}`
                          : undefined
                      }
                    >
                      {maxBatch === 0 ? "–" : mostOf(maxBatch)}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
