/** What the rules about containers share. */
import type { FileFacts } from "../flow/file_facts.js";
import type { Growth } from "../flow/growth.js";
import { isFromArguments, isRegistration, isTypeLike } from "../flow/registration.js";
import type { Use } from "../scopes/uses.js";

/** Nothing drops entries: the container has no limit, nothing removes, and nothing compares its length with a limit. */
export function onlyGrows({ container, shrinks, isChecked, grows }: Growth): boolean {
  return !container.isBounded && shrinks.length === 0 && !isChecked && grows.length > 0;
}

/** A name as messages show it. */
export function code(text: string): string {
  return `\`${text.replaceAll(/\s+/g, " ")}\``;
}

/** "gains an entry". */
export function gains({ container }: Growth): string {
  return container.kind === "dict" ? "gains an entry for each new key" : "gains an entry";
}

export interface Suspect {
  readonly use: Use;
  /** "in each call of `f`". */
  readonly when: string;
  /** The file shows that the code runs again and again. */
  readonly isRepeated: boolean;
}

/** The use by which a container grows with the program's work; null where it grows with its text alone, as registries do. */
export function growingUse(growth: Growth, file: FileFacts): Suspect | null {
  const uses = growth.grows.filter((use) => !isRegistration(use) && !isTypeLike(use.key));
  for (const use of uses) {
    const repeat = file.repeats.of(use.at);
    if (repeat !== null && use.by !== "[]+=") {
      return { use, when: repeat.text, isRepeated: true };
    }
  }
  const use = uses.find(isWork);
  const name = use?.scope.functionAround?.name;
  return use === undefined
    ? null
    : { use, when: `in each call of ${name ? code(name) : "a lambda"}`, isRepeated: false };
}

/** Without a sign that the function runs again, what it adds must depend on how it is called. */
function isWork(use: Use): boolean {
  const scope = use.scope.functionAround;
  const added = use.key ?? use.value;
  return use.by !== "[]+=" && isFromArguments(added, scope);
}
