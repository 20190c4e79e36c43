import type { Edit, Fix } from "../rules/rule.js";

/** The text with all fixes that do not overlap, in the order given, and how many were applied. */
export function applyFixes(text: string, fixes: readonly Fix[]): { text: string; applied: number } {
  const chosen: Edit[] = [];
  let applied = 0;
  for (const { edits } of fixes) {
    const isFree = edits.every((edit) => chosen.every((other) => !overlap(edit, other)));
    if (isFree) {
      chosen.push(...edits);
      applied++;
    }
  }
  const fromEnd = chosen.toSorted((a, b) => b.start - a.start);
  return {
    text: fromEnd.reduce(
      (all, edit) => all.slice(0, edit.start) + edit.text + all.slice(edit.end),
      text,
    ),
    applied,
  };
}

function overlap(a: Edit, b: Edit): boolean {
  return a.start === b.start || (a.start < b.end && b.start < a.end);
}
