/** The choice of advice. Ids are stable; docs/advice.md is generated from the catalogue. */
import type { Millis } from "../../model/base/units.js";
import type { AdviceJson, VerdictKind } from "../../model/documents/diagnosis_document.js";
import { OTHER_ADVICE, watchLonger } from "./advice_catalogue.js";
import type { Advice, AdviceFacts } from "./advice_entry.js";
import { HOLDER_ADVICE, QUEUE_ADVICE } from "./holder_advice.js";
import { nameOf } from "./holder_name.js";

export const ADVICE: readonly Advice[] = [...HOLDER_ADVICE, ...OTHER_ADVICE];

const MOST_ADVICE = 2;
const NO_FACTS: AdviceFacts = { holder: null, code: "" };

/** TM-A090 with the window length from the verdict. `next`: of {@link watchLonger}. */
export function watchLongerAdvice(neededMs: Millis, next: string): AdviceJson {
  return { id: "TM-A090", text: watchLonger(neededMs, next) };
}

/** Throws if the catalogue has no such id. */
export function adviceById(wanted: string, facts: AdviceFacts = NO_FACTS): AdviceJson {
  const found = ADVICE.find(({ id }) => id === wanted);
  if (!found) {
    throw new Error(`no advice ${wanted}`);
  }
  return adviceJson(found, facts);
}

/** Advice that matches a verdict and what is known about its memory: most specific first, at most two. */
export function adviceFor(kind: VerdictKind, facts: AdviceFacts = NO_FACTS): AdviceJson[] {
  const fitting = ADVICE.filter((advice) => advice.kinds.includes(kind) && fits(advice, facts));
  const replaced = new Set(fitting.flatMap(({ insteadOf }) => insteadOf ?? []));
  const left = fitting.filter(({ id }) => !replaced.has(id));
  const general = left.filter((advice) => !isNarrow(advice) && advice.isLast !== true);
  const [first, ...narrow] = left.filter((advice) => isNarrow(advice) && advice.isLast !== true);
  // What to do about the workers comes second, after the advice about what holds their memory.
  const ofKind = narrow.filter(({ kinds }) => kinds.length === 1);
  const others = narrow.filter(({ kinds }) => kinds.length > 1);
  const chosen = [...(first ? [first] : []), ...ofKind, ...others, ...general];
  return (chosen.length > 0 ? chosen : left)
    .slice(0, MOST_ADVICE)
    .map((advice) => adviceJson(advice, facts));
}

/** For a backlog: what fits the queue in which the items wait. */
export function adviceForBacklog(facts: AdviceFacts): AdviceJson[] {
  const found = HOLDER_ADVICE.find(({ id, fits }) => QUEUE_ADVICE.has(id) && fits?.(facts));
  return [found ? adviceJson(found, facts) : adviceById("TM-A006", facts)];
}

function isNarrow({ holder, code, unlessCode, fits }: Advice): boolean {
  return (holder ?? code ?? unlessCode ?? fits) !== undefined;
}

function fits(advice: Advice, facts: AdviceFacts): boolean {
  const { holder, code } = facts;
  return (
    (advice.holder === undefined || (holder !== null && advice.holder.test(holder.type))) &&
    (advice.code === undefined || advice.code.test(code)) &&
    !advice.unlessCode?.test(code) &&
    (advice.fits === undefined || advice.fits(facts))
  );
}

function adviceJson({ id, text, named }: Advice, facts: AdviceFacts): AdviceJson {
  const name = facts.holder === null ? null : nameOf(facts.holder);
  return { id, text: (name === null ? null : named?.(name, facts)) ?? text };
}
