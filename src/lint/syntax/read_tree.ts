import type { TreeCursor } from "web-tree-sitter";
import { type Comment, SourceText, SyntaxNode, type SyntaxTree } from "./tree.js";

/** Deeper nodes are left out, because the rules walk the tree by recursion. Code that people write stays below 60. */
const DEEPEST = 600;

/** Nodes whose children are irrelevant to the rules. */
const LEAVES = new Set(["type", "format_specifier", "string_content", "import_prefix"]);

/** Nodes without a name of the grammar that rules read. */
const KEPT_WORDS = new Set(["async"]);

/** Copies the parser's tree. `cursor` is at the root. */
export function readTree(cursor: TreeCursor, text: string): SyntaxTree {
  const source = new SourceText(text);
  const comments: Comment[] = [];
  let unknownSyntaxLine: number | null = null;
  let tooDeepLine: number | null = null;
  const root = new SyntaxNode(cursor.nodeType, null, 0, text.length, null, source);
  /** The nodes that are open, and their children so far. */
  let parent = root;
  let children: SyntaxNode[] = [];
  const open: { parent: SyntaxNode; children: SyntaxNode[] }[] = [];
  let isOpen = cursor.gotoFirstChild();
  while (isOpen) {
    const kind = cursor.nodeType;
    let node: SyntaxNode | null = null;
    if (kind === "comment") {
      const start = cursor.startIndex;
      comments.push({ text: text.slice(start, cursor.endIndex), line: source.lineAt(start) });
    } else if (cursor.nodeIsNamed) {
      node = new SyntaxNode(
        kind,
        cursor.currentFieldName,
        cursor.startIndex,
        cursor.endIndex,
        parent,
        source,
      );
    } else if (KEPT_WORDS.has(kind) || cursor.currentFieldId !== 0) {
      const { currentFieldName, startIndex, endIndex } = cursor;
      children.push(new SyntaxNode(kind, currentFieldName, startIndex, endIndex, parent, source));
    }
    if (node !== null) {
      children.push(node);
      if (kind === "ERROR") {
        unknownSyntaxLine ??= node.line;
      }
      const isDeep = open.length >= DEEPEST;
      if (!isDeep && !isLeaf(kind, node) && cursor.gotoFirstChild()) {
        open.push({ parent, children });
        parent = node;
        children = [];
        continue;
      }
      if (isDeep) {
        tooDeepLine ??= node.line;
      }
    }
    while (!cursor.gotoNextSibling()) {
      if (children.length > 0) {
        parent.children = children;
      }
      const above = open.pop();
      if (above === undefined) {
        isOpen = false;
        break;
      }
      cursor.gotoParent();
      ({ parent, children } = above);
    }
  }
  return { source, root, comments, unknownSyntaxLine, tooDeepLine };
}

/** Strings have parts that matter only if they are formatted. */
function isLeaf(kind: string, node: SyntaxNode): boolean {
  if (kind === "identifier" || LEAVES.has(kind)) {
    return true;
  }
  if (kind !== "string") {
    return false;
  }
  // The letters before the quote: `f"..."`, `rb"..."`.
  const { text } = node.source;
  for (let at = node.start; at < node.end; at++) {
    const character = text.charCodeAt(at) | 32;
    if (character === 102 /* f */ || character === 116 /* t */) {
      return false;
    }
    if (character < 97 /* a */ || character > 122 /* z */) {
      return true;
    }
  }
  return true;
}
