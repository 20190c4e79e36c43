/** What to do, and what the snapshot cannot say. */
import type { GpuJson } from "../../../src/model/gpu_document.js";

export function GpuAdvice({ summary }: { summary: Pick<GpuJson, "advice" | "limits"> }) {
  return (
    <section className="gpu-panel">
      <h2>{summary.advice.length > 0 ? "What to do" : "What the snapshot cannot say"}</h2>
      <ul className="gpu-advice">
        {summary.advice.map(({ id, text }) => (
          <li key={id}>
            <b>{id}</b> {text}
          </li>
        ))}
        {summary.limits.map((limit) => (
          <li key={limit} className="limit">
            {limit}
          </li>
        ))}
      </ul>
    </section>
  );
}
