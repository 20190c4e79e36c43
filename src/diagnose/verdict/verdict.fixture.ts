/** The verdict on evidence that a test writes as text; see evidence.fixture.ts. */

import type { VerdictKind } from "../../model/documents/diagnosis_document.js";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { observe } from "../evidence/observations.js";
import { RULES } from "../rules/index.js";
import type { Finding } from "../rules/rule.js";
import { diagnose } from "./verdict.js";

export function verdict(text: string): VerdictKind {
  return diagnose(evidenceOf(text)).verdict.kind;
}

/** The finding of one rule. */
export function ruleFinding(name: string, text: string): Finding | null | undefined {
  return RULES.find((rule) => rule.name === name)?.judge(observe(evidenceOf(text)));
}
