/** The code that shows what a piece of advice means, with the program's own names where they are known. */
import { formatExactCount } from "../../model/base/numbers.js";
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import type { AdviceExample } from "../../model/documents/diagnosis_page.js";
import { ADVICE } from "./advice.js";
import type { Advice } from "./advice_entry.js";
import { nameOf } from "./holder_name.js";

/** The attributes in which queues keep their items; the advice is about the queue itself. */
const INSIDE_QUEUE = /\.(?:queue|_queue|_buffer)$/;
/** A name outside of strings and not an attribute. */
const nameIn = (name: string) => new RegExp(`(?<![.\\w"'])${name}\\b(?!["'])`, "g");

/**
 * An example for each piece of advice that a diagnosis gives, in the order of the catalogue. None for an undecided
 * verdict: it advises a longer window, and the example of that advice names another process.
 */
export function adviceExamples({ verdict, suspects, advice }: DiagnosisJson): AdviceExample[] {
  if (verdict.kind === "insufficient-evidence") {
    return [];
  }
  const given = new Set([...suspects.flatMap((one) => one.advice), ...advice].map(({ id }) => id));
  return ADVICE.filter(({ id }) => given.has(id)).map((entry) => {
    const holder = suspects.find((one) => one.advice.some(({ id }) => id === entry.id))?.holder;
    return example(entry, holder ? nameOf(holder) : null, holder?.entries ?? 0);
  });
}

/** The bound of the catalogue's deque, which a list of a few large objects never reaches. */
const USUAL_BOUND = 10_000;

/** A power of ten that the holder has reached: "100" for 787 entries. */
function boundText(entries: number): string {
  const power = Math.floor(Math.log10(Math.max(10, entries / 2)));
  const bound = entries === 0 ? USUAL_BOUND : Math.min(USUAL_BOUND, 10 ** power);
  return formatExactCount(bound).replace(",", "_");
}

function example(
  { id, stands, before, after }: Advice,
  name: string | null,
  entries: number,
): AdviceExample {
  if (stands === undefined || name === null) {
    return { id, intro: "A template, whose names stand for yours:", before, after };
  }
  const named = (code: string) =>
    code
      .replace(nameIn(stands), name.replace(INSIDE_QUEUE, ""))
      .replace("maxlen=10_000", `maxlen=${boundText(entries)}`);
  return { id, intro: "For example:", before: named(before), after: named(after) };
}
