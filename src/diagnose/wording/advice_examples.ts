/** The code that shows what a piece of advice means, with the program's own names where they are known. */
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
    return example(entry, holder ? nameOf(holder) : null);
  });
}

function example({ id, stands, before, after }: Advice, name: string | null): AdviceExample {
  if (stands === undefined || name === null) {
    return { id, intro: "A template, whose names stand for yours:", before, after };
  }
  const named = (code: string) => code.replace(nameIn(stands), name.replace(INSIDE_QUEUE, ""));
  return { id, intro: "For example:", before: named(before), after: named(after) };
}
