/**
 * The containers of other modules from which a file removes entries: `cache.ENTRIES.clear()`, `from cache import
 * ENTRIES`.
 */

const REMOVAL = "(?:clear|pop|popitem|popleft|remove|discard|difference_update)\\(";
const OF_MODULE = new RegExp(`\\b([A-Za-z_]\\w*)\\.([A-Za-z_]\\w*)\\.${REMOVAL}`, "g");
const DELETED = /\bdel\s+([A-Za-z_]\w*)\.([A-Za-z_]\w*)\[/g;
const REPLACED = /^\s*([A-Za-z_]\w*)\.([A-Za-z_]\w*)\s*=\s*(?:[[{]|dict\(|list\(|set\()/gm;
const OF_NAME = new RegExp(`(?<![.\\w])([A-Za-z_]\\w*)\\.${REMOVAL}`, "g");
const IMPORT = /^[ \t]*from[ \t]+[\w.]*?(\w+)[ \t]+import[ \t]+(\([^)]*\)|[^#\n]+)/gm;

/** "MODULE.NAME" with the last name of the module. */
export function removalsIn(text: string): string[] {
  const found: string[] = [];
  for (const pattern of [OF_MODULE, DELETED, REPLACED]) {
    for (const [, module, name] of text.matchAll(pattern)) {
      found.push(`${module}.${name}`);
    }
  }
  const removed = new Set([...text.matchAll(OF_NAME)].map(([, name]) => name));
  if (removed.size > 0) {
    for (const [, module, names = ""] of text.matchAll(IMPORT)) {
      for (const part of names.replaceAll(/[()]/g, "").split(",")) {
        const [name, alias = name] = part.trim().split(/\s+as\s+/);
        if (removed.has(alias ?? "")) {
          found.push(`${module}.${name}`);
        }
      }
    }
  }
  return found;
}

/** The name by which other files import a file. */
export function moduleNameOf(path: string): string {
  const parts = path.replace(/\.pyw?$/, "").split("/");
  const last = parts.at(-1) ?? "";
  return last === "__init__" ? (parts.at(-2) ?? last) : last;
}
