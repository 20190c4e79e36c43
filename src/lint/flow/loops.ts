/** Facts about loops: how often their bodies run, and what ends them. */
import { bare, integerValue, isInside, opensScope, positionals } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";

const COMPREHENSIONS = /^(?:list|set|dictionary)_comprehension$|^generator_expression$/;

/** Whether `outer` runs `child` once per iteration. */
export function isLoopOf(outer: SyntaxNode, child: SyntaxNode): boolean {
  switch (outer.kind) {
    case "for_statement":
      return child.field === "body";
    case "while_statement":
      return child.field === "body" || child.field === "condition";
    default:
      return COMPREHENSIONS.test(outer.kind) && child.field === "body";
  }
}

const FEW_ROUNDS = 16;

/** A loop over a literal or a small range, with a known number of iterations. */
export function isShort(loop: SyntaxNode): boolean {
  const clause = COMPREHENSIONS.test(loop.kind)
    ? loop.children.find(({ kind }) => kind === "for_in_clause")
    : loop;
  const right = clause?.child("right");
  if (right === null || right === undefined) {
    return false;
  }
  const iterable = bare(right);
  if (/^(?:tuple|list|set|dictionary|string)$/.test(iterable.kind)) {
    return !iterable.children.some(({ kind }) => kind === "list_splat");
  }
  if (iterable.kind === "call" && iterable.child("function")?.text === "range") {
    const numbers = positionals(iterable).map(integerValue);
    const [first, last = first] = numbers;
    return typeof last === "number" && last <= FEW_ROUNDS;
  }
  return false;
}

/**
 * A loop that runs as long as the program: `while True`, `while self.running` or a loop over a subscription. A loop
 * with a break, a return or a yield counts only if it waits for something, because parsers loop until their input ends.
 */
export function isEndless(loop: SyntaxNode): boolean {
  const body = loop.child("body");
  if (body === null) {
    return false;
  }
  if (loop.kind === "while_statement") {
    const condition = loop.child("condition")?.text.trim() ?? "";
    const isForever = /^(?:True|1)$/.test(condition);
    return (
      (isForever || RUNNING.test(condition)) &&
      (WAITING.test(body.text) || (isForever && !isLeft(body, true) && !isCaught(loop)))
    );
  }
  const right = loop.child("right")?.text ?? "";
  const item = loop.child("left")?.text ?? "";
  return loop.children.some(({ kind }) => kind === "async")
    ? STREAMS.test(right) || (FEEDS.test(right) && MESSAGES.test(item))
    : ITERATORS.test(right) || (FEEDING_CALLS.test(right) && MESSAGES.test(item));
}

/** A `for` over these never ends. */
const ITERATORS =
  /^(?:itertools\.count|count)\(|^iter\(\s*[\w.]*(?:queue|conn|sock)|(?:\.listen|\.subscribe|\.consume|consumer)(?:\(.*\))?$/is;
/** A `for` over these never ends if they yield messages. */
const FEEDING_CALLS = /(?:^|\.)(?:watch|stream|listen|subscribe|consume|tail|follow)\w*\(.*\)$/s;
const RUNNING =
  /^(?:not\s+[\w.]*(?:stop|shutdown|clos|exit|quit|cancel|done|finish)[\w.]*(?:\(\))?|[\w.]*(?:running|alive|active|is_open|started|connected)(?:\(\))?)$/i;
/** Calls that wait for work or time. */
const WAITING =
  /\.(?:recv|recvfrom|accept|poll|consume|listen|receive|receive_text|receive_json|recv_json|brpop|blpop|xread|get_message|read_message)\(|(?:[\w.]*(?:queue|inbox|jobs|tasks|mailbox|channel)|\b_?q)\.get\(|\bsleep\(|\.wait\(|\bselect\(/i;
/** An `async for` over these runs as long as the connection. */
const STREAMS =
  /(?:consumer|subscri\w*|\blisten\w*|pubsub|websocket|\bws|ws_conn\w*|\bsocket|messages|notifications|watch|events)(?:\.\w+)?(?:\(.*\))?$|(?:channel|connection|client)(?:\.(?:listen|messages|notifications|events|iter|stream|receive|recv|subscribe|incoming|consume|watch)\w*)?(?:\(.*\))?$/is;
/** The same for these if they yield messages, not parts of one answer. */
const FEEDS =
  /(?:broker|bus|queue|queue_iter|topic|feed|exchange|redis|nats|nc|kafka|mqtt|amqp|inbox|source|reader|conn|session)(?:\.\w+)?(?:\(.*\))?$|\.?(?:stream|tail|poll|incoming|requests)(?:\(.*\))?$/is;
const MESSAGES =
  /^(?:_?m|\w*msg|\w*message|\w*event|evt|ev|\w*record|rec|\w*job|\w*update|tick|trade|quote|\w*order|envelope|packet|delivery|notification|req|\w*request|payload|reading)$/i;

/** `try: while True: ... except StopIteration:`, or `queue.Empty`: the end of the input leaves the loop. */
function isCaught(loop: SyntaxNode): boolean {
  for (let outer = loop.parent; outer !== null && !opensScope(outer); outer = outer.parent) {
    if (
      outer.kind === "try_statement" &&
      /except\s*\(?[^:]*(?:StopIteration|EOFError|IndexError|Empty|EndOf\w*)/.test(outer.text)
    ) {
      return true;
    }
  }
  return false;
}

/** Whether a `break`, a `return` or an exception in the body ends a loop. */
export function canEnd(loop: SyntaxNode): boolean {
  const body = loop.child("body");
  return body !== null && isLeft(body, true);
}

/** Whether a `break` of this loop, a `return`, a `raise` or a `yield` is in its body. */
function isLeft(node: SyntaxNode, ofLoop: boolean): boolean {
  return node.children.some((child) => {
    if (opensScope(child)) {
      return false;
    }
    const isExit =
      /^(?:return_statement|yield|raise_statement)$/.test(child.kind) ||
      (child.kind === "break_statement" && ofLoop);
    const isLoop = child.kind === "for_statement" || child.kind === "while_statement";
    if (!isExit && isLoop) {
      // A `break` in the `else` of an inner loop leaves the outer one.
      return child.children.some((part) => isLeft(part, ofLoop && part.kind === "else_clause"));
    }
    return isExit || isLeft(child, ofLoop);
  });
}

/** Whether control leaves the loop after the statement with the node, so that it runs once: `try: x = f(); break`. */
export function leavesAfter(node: SyntaxNode, loop: SyntaxNode): boolean {
  let child = node;
  for (let outer = node.parent; outer !== null && outer !== loop.parent; outer = outer.parent) {
    if (child.kind === "return_statement") {
      return true;
    }
    if (outer.kind === "block") {
      const after = outer.children.slice(outer.children.indexOf(child) + 1);
      if (after.some(({ kind }) => /^(?:return|break|raise)_statement$/.test(kind))) {
        return true;
      }
    }
    if (outer.kind === "try_statement" && child.field === "body") {
      // `try: ... except: ... else: break`
      const last = outer.children.find(({ kind }) => kind === "else_clause");
      if (last !== undefined && /(?:^|\n)\s*(?:break|return\b[^\n]*)\s*$/.test(last.text)) {
        return true;
      }
    }
    child = outer;
  }
  return !isInside(node, loop);
}
