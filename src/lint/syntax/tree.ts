/** A parsed Python file as plain objects, which the rules read. The parser's own tree stays inside `read_tree.ts`. */

/** The text of one file. Offsets are UTF-16 code units from its start; lines count from 1. */
export class SourceText {
  #lineStarts: number[] | null = null;

  constructor(readonly text: string) {}

  /** The line of an offset. */
  lineAt(offset: number): number {
    const starts = this.#starts();
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] as number) <= offset) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low + 1;
  }

  /** Where a line starts; the end of the text for a line after the last one. */
  startOfLine(line: number): number {
    return this.#starts()[line - 1] ?? this.text.length;
  }

  lineText(line: number): string {
    return this.text
      .slice(this.startOfLine(line), this.startOfLine(line + 1))
      .replace(/\r?\n$/, "");
  }

  /** Counted as in an editor: text after the last line end is a line, but an empty rest is not. */
  get lines(): number {
    const starts = this.#starts();
    return starts.at(-1) === this.text.length ? starts.length - 1 : starts.length;
  }

  #starts(): number[] {
    if (this.#lineStarts === null) {
      this.#lineStarts = [0];
      for (let at = this.text.indexOf("\n"); at !== -1; at = this.text.indexOf("\n", at + 1)) {
        this.#lineStarts.push(at + 1);
      }
    }
    return this.#lineStarts;
  }
}

const NO_NODES: readonly SyntaxNode[] = [];

/** One node of the tree, with the names of the grammar: https://github.com/tree-sitter/tree-sitter-python. */
export class SyntaxNode {
  /** Named children, and operators; comments are left out. */
  children: readonly SyntaxNode[] = NO_NODES;
  #text: string | null = null;

  constructor(
    readonly kind: string,
    /** The name that the parent has for it, such as "left"; null if it has none. */
    readonly field: string | null,
    readonly start: number,
    readonly end: number,
    readonly parent: SyntaxNode | null,
    readonly source: SourceText,
  ) {}

  get text(): string {
    this.#text ??= this.source.text.slice(this.start, this.end);
    return this.#text;
  }

  get line(): number {
    return this.source.lineAt(this.start);
  }

  get endLine(): number {
    return this.source.lineAt(Math.max(this.start, this.end - 1));
  }

  /** The first child with this field name. */
  child(field: string): SyntaxNode | null {
    for (const node of this.children) {
      if (node.field === field) {
        return node;
      }
    }
    return null;
  }

  /** All children with this field name. */
  childrenOf(field: string): SyntaxNode[] {
    return this.children.filter((node) => node.field === field);
  }
}

export interface Comment {
  readonly text: string;
  readonly line: number;
}

export interface SyntaxTree {
  readonly source: SourceText;
  readonly root: SyntaxNode;
  readonly comments: readonly Comment[];
  /** The first line with syntax that the parser does not know. */
  readonly unknownSyntaxLine: number | null;
  /** The first line that is nested too deeply to be read. */
  readonly tooDeepLine: number | null;
}
