/** Selectors of labels, as Grafana writes them: `{service_name="shop", pod=~"web-.*"}`. */
import { badUsage, oneLine } from "../../model/errors/errors.js";
import type { LabelMatcher } from "../../store/index.js";

const LONGEST_SELECTOR = 16_384;
const MOST_MATCHERS = 100;
const PART =
  /\s*(?:([A-Za-z_][\w.]*)|"((?:[^"\\]|\\.)*)")\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|`([^`]*)`)\s*(,|$)/y;

/** Throws TidemarkError. */
export function parseSelector(text: string): LabelMatcher[] {
  const trimmed = text.trim();
  if (trimmed.length > LONGEST_SELECTOR) {
    throw badUsage(`the selector is longer than ${LONGEST_SELECTOR} characters`, "");
  }
  const inside = /^\{(.*)\}$/s.exec(trimmed)?.[1] ?? (trimmed === "" ? "" : broken(trimmed));
  const matchers: LabelMatcher[] = [];
  PART.lastIndex = 0;
  while (inside.slice(PART.lastIndex).trim() !== "") {
    const found = PART.exec(inside) ?? broken(trimmed);
    const [, bare, quoted = "", operator = "=", value = "", raw] = found;
    matchers.push({
      name: bare ?? unquoted(quoted),
      operator: operator as LabelMatcher["operator"],
      value: raw ?? unquoted(value),
    });
    if (matchers.length > MOST_MATCHERS) {
      throw badUsage(`the selector has more than ${MOST_MATCHERS} parts`, "");
    }
  }
  return matchers;
}

function broken(text: string): never {
  throw badUsage(
    `this selector cannot be read: ${oneLine(text, 80)}`,
    'its form is {name="value", name=~"pattern"}',
  );
}

const ESCAPES = new Map(
  Object.entries({ a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" }),
);
const ESCAPED =
  /\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U(00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4})|(.))/gs;

/** Escapes in Go's syntax, because Grafana and profilecli write values with `%q`. */
function unquoted(text: string): string {
  return text.replace(ESCAPED, (_, byte, short, long, plain) =>
    plain === undefined
      ? String.fromCodePoint(Number.parseInt(byte ?? short ?? long, 16))
      : (ESCAPES.get(plain) ?? plain),
  );
}
