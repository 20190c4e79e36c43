/** One piece of advice, and the facts that decide whether it applies. */
import type { HolderJson, VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { Handles } from "../causes/growing_handles.js";

/** What is known about the memory that a verdict accuses. */
export interface AdviceFacts {
  readonly holder: HolderJson | null;
  /** Functions and files of the suspect's stacks: "request /srv/app.py". */
  readonly code: string;
  /** The leaf of each stack of all suspects of the verdict, in the same form. */
  readonly made?: string;
  /** Whether many tracebacks exist in the process. */
  readonly holdsTracebacks?: boolean;
  /** Types whose objects became more, with the increase. */
  readonly added?: ReadonlyMap<string, number>;
  /** Whether a library allocated the memory for the holder, which is one object. */
  readonly isOfOneObject?: boolean;
  /** Whether it is the containers in the holder that grow, more than the holder. */
  readonly containersGrow?: boolean;
  /** How many of the suspect's objects each entry of the holder held when it was counted. */
  readonly objectsOfEntry?: number;
  /** For handles: which of them accumulate. */
  readonly handles?: Handles;
}

export interface Advice {
  readonly id: string;
  readonly text: string;
  /** The text with the program's own names; null: the general text applies. `name`: "hub.watchers". */
  readonly named?: (name: string, facts: AdviceFacts) => string | null;
  /** When the advice applies, as shown on the docs page. */
  readonly when: string;
  readonly kinds: readonly VerdictKind[];
  /** Restrict the advice to holder types, or to the functions and files of a suspect's stacks, that match. */
  readonly holder?: RegExp;
  readonly code?: RegExp;
  /** Leaves it out where an entry for such code applies. */
  readonly unlessCode?: RegExp;
  /** A restriction that needs several facts. */
  readonly fits?: (facts: AdviceFacts) => boolean;
  /** Ids that it replaces, because they do not fit what is held. */
  readonly insteadOf?: readonly string[];
  /** Given only if no other piece applies. */
  readonly isLast?: true;
  /** The variable in `before` and `after` that stands for what holds the memory. */
  readonly stands?: string;
  readonly before: string;
  readonly after: string;
}
