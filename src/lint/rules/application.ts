/**
 * Containers that the application object holds: `app.state.seen`, `request.app["bodies"]`. Often another file creates
 * them.
 */
import type { FileFacts } from "../flow/file_facts.js";
import { bare } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";

const ENTRY =
  /^(?:self\.)?(?:request\.|req\.)?(?:app|current_app|application)(?:\.(?:config|extensions|storage))?(?:\[["'][^\]]+\]|\.(?:state|ctx)\.\w+|\.(?:state|ctx)\[["'][^\]]+\])$/;
const APPLICATIONS = /(?:^|\.)(?:FastAPI|Starlette|Flask|Quart|Application|Sanic|Litestar)$/;

/** Whether the file can hold such entries at all. */
export function namesApplication(file: FileFacts): boolean {
  return /\bapp\b|_app\b|\bapplication\b|FastAPI|Starlette|Flask|Quart|Sanic|Litestar/.test(
    file.tree.source.text,
  );
}

/** 'app["seen"]', also of `app.setdefault("seen", [])`; null if it does not belong to an application. */
export function entryOfApplication(holder: SyntaxNode, file: FileFacts): string | null {
  const node = bare(holder);
  const text = node.text.replace(/\.setdefault\(\s*(["'][^"']+["']).*\)$/s, "[$1]");
  const root = firstName(node);
  const made = root === null ? null : file.names.constructorOf(root);
  const entry =
    root !== null && made !== null && APPLICATIONS.test(made)
      ? `app${text.slice(root.text.length)}`
      : text;
  return ENTRY.test(entry) ? entry : null;
}

/** Whether anything in the file removes from the entry or checks its length. */
export function isEntryEmptied(entry: string, file: FileFacts): boolean {
  const name = /(?:\[["']|\.)(\w+)["'\]]*$/.exec(entry)?.[1] ?? entry;
  const uses = [
    `${name}["'\\]]*\\.(?:pop|popitem|popleft|clear|remove|discard)\\(`,
    `\\bdel .*${name}["'\\]]*\\[`,
    `len\\(.*${name}`,
  ];
  return new RegExp(uses.join("|")).test(file.tree.source.text);
}

function firstName(node: SyntaxNode): SyntaxNode | null {
  let inner: SyntaxNode | null = node;
  while (inner !== null && inner.kind !== "identifier") {
    inner = inner.child("object") ?? inner.child("value") ?? inner.child("function");
  }
  return inner;
}
