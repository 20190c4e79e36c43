import type { FileFacts } from "../flow/file_facts.js";
import type { SyntaxNode } from "../syntax/tree.js";

/** `error`: grows without bound by itself. `warning`: grows once, or only in some uses. */
export type Severity = "error" | "warning";

/** A change of the text that keeps what the program does. */
export interface Fix {
  readonly description: string;
  readonly edits: readonly Edit[];
}

/** Replaces the text from `start` up to `end`: offsets in UTF-16 code units. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A rule's report about one place. */
export interface Report {
  readonly node: SyntaxNode;
  /** One sentence: what grows, and that nothing removes it. */
  readonly message: string;
  /** Set if it differs from the rule's. */
  readonly severity?: Severity;
  readonly fix?: Fix;
}

/** One leak pattern. Its texts are the rule's section in docs/lint.md. */
export interface Rule {
  /** "TM-L001"; never used again for another rule. */
  readonly id: `TM-L${number}`;
  /** "module-container-grows". */
  readonly name: string;
  readonly severity: Severity;
  /** What the rule finds, in one sentence. */
  readonly finds: string;
  /** Why memory grows. */
  readonly why: string;
  /** How fast memory grows. */
  readonly speed: string;
  /** Python that the rule reports, and the same without the leak: both are tests of the rule. */
  readonly before: string;
  readonly after: string;
  /** When the code is right as it is. */
  readonly ignore: string;
  /** How Tidemark shows the leak in the running program. */
  readonly proof: string;
  check(file: FileFacts): Iterable<Report>;
}
