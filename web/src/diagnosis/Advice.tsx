import type { AdviceJson } from "../../../src/model/documents/diagnosis_document.js";
import type { DiagnosisPage } from "../../../src/model/documents/diagnosis_page.js";

/** Each piece of advice once, however many suspects it applies to, with code before and after. */
export function Advice({ page: { diagnosis, examples } }: { page: DiagnosisPage }) {
  const given = new Map<string, { advice: AdviceJson; ranks: number[] }>();
  for (const { rank, advice } of diagnosis.suspects) {
    for (const one of advice) {
      const known = given.get(one.id) ?? { advice: one, ranks: [] };
      known.ranks.push(rank);
      given.set(one.id, known);
    }
  }
  for (const advice of diagnosis.advice) {
    if (!given.has(advice.id)) {
      given.set(advice.id, { advice, ranks: [] });
    }
  }
  return (
    <section aria-label="Advice">
      <h3>Advice</h3>
      {given.size === 0 && <p className="missing">There is nothing to fix.</p>}
      {[...given.values()].map(({ advice: { id, text }, ranks }) => {
        const example = examples.find((one) => one.id === id);
        return (
          <article key={id} className="advice">
            <p>
              {text} <code className="note">{id}</code>
              {diagnosis.suspects.length > 1 && ranks.length > 0 && (
                <span className="note"> for suspect {ranks.join(", ")}</span>
              )}
            </p>
            {example && (
              <>
                <p className="note">{example.intro}</p>
                <div className="advice-code">
                  <Code name="Before" text={example.before} />
                  <Code name="After" text={example.after} />
                </div>
              </>
            )}
          </article>
        );
      })}
    </section>
  );
}

function Code({ name, text }: { name: "Before" | "After"; text: string }) {
  return (
    <figure className={`code-${name.toLowerCase()}`}>
      <figcaption>{name}</figcaption>
      <pre>{text}</pre>
    </figure>
  );
}
