/** Links and headings of a Markdown page: for the link check, and for the pages of the docs site. */
import GithubSlugger, { slug } from "github-slugger";

/** A code block, inline code, or a comment: links in these are plain text. */
const NOT_TEXT =
  /^(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\1[`~]*[ \t]*$|^ {4,}\S[^\n]*$|`[^`\n]+`|<!--[\s\S]*?-->/gm;
const LINK = /(!?\[(?:[^[\]]|\[[^\]]*\])*\]\()([^()\s]+(?:\([^()\s]*\))?)((?:\s+"[^"]*")?\))/g;
const HEADING = /^#{1,6}[ \t]+(.+?)[ \t]*#*$/gm;

/**
 * @typedef {object} Link
 * @property {string} target as written: `page.md#anchor`, `#anchor`, `https://...`
 * @property {number} line counts from 1
 */

/** @param {string} text @returns {Link[]} */
export function linksOf(text) {
  // Inline code may be the text of a link, so only code that contains a link is blanked.
  const plain = blankCode(text);
  return [...plain.matchAll(LINK)].map((match) => ({
    target: match[2] ?? "",
    line: plain.slice(0, match.index).split("\n").length,
  }));
}

/**
 * @param {string} text
 * @param {(target: string) => string} change the new target of each link
 * @returns {string}
 */
export function replaceLinks(text, change) {
  const plain = blankCode(text);
  let result = "";
  let from = 0;
  for (const match of plain.matchAll(LINK)) {
    const start = match.index + (match[1] ?? "").length;
    result += text.slice(from, start) + change(match[2] ?? "");
    from = start + (match[2] ?? "").length;
  }
  return result + text.slice(from);
}

/** @param {string} text @returns {Set<string>} the anchors of its headings, as GitHub and the docs site name them */
export function anchorsOf(text) {
  const slugger = new GithubSlugger();
  const blocks = text.replace(/^(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\1[`~]*[ \t]*$/gm, "");
  return new Set(
    [...blocks.matchAll(HEADING)].map(([, heading = ""]) =>
      slugger.slug(
        heading
          .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
          .replace(/[`*]/g, "")
          .replace(/<!--.*?-->/g, "")
          .trim(),
      ),
    ),
  );
}

/** Anchor of one heading. @param {string} heading @returns {string} */
export const anchorOf = (heading) => slug(heading.trim());

/** Replaces code that contains a link with spaces, so that positions stay the same. @param {string} text */
function blankCode(text) {
  return text.replace(NOT_TEXT, (code) =>
    code.includes("](") ? code.replace(/[^\n]/g, " ") : code,
  );
}
