/**
 * Writes the pages of the docs site to a folder, from which VitePress builds it:
 *
 *   docs/README.md   -> index.md         the home page; its tables are the sidebar
 *   docs/NAME.md     -> NAME.md
 *   PATH/README.md   -> repository/PATH/index.md, if a page links to it (so do CHANGELOG.md and the like)
 *   PATH/source.c    -> public/files/PATH/source.c.txt, if a page links to it
 *   PATH/            -> repository/PATH/index.md, a list of the folder's files
 *
 * Links are rewritten to match. A broken link stops the build; scripts/checks/links.mjs names it.
 */
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, posix } from "node:path";
import { root } from "../setup.mjs";
import { linksOf, replaceLinks } from "./markdown_links.mjs";

/** @typedef {{text: string, items: {text: string, link: string}[]}} Group of the sidebar */

/**
 * @param {string} folder is created if missing; existing files in it are kept
 * @returns {{pages: string[], sidebar: Group[]}} `pages`: from the repository's root
 */
export function stage(folder) {
  const pages = markdownBelow("docs");
  /** @type {Set<string>} */
  const done = new Set();
  for (let page = pages.shift(); page !== undefined; page = pages.shift()) {
    if (done.has(page)) {
      continue;
    }
    done.add(page);
    const text = isFolder(page) ? listOf(page) : readFileSync(join(root, page), "utf8");
    write(join(folder, placeOf(page)), staged(text, page, folder, pages));
  }
  return { pages: [...done].sort(), sidebar: sidebarOf(readFileSync(join(root, HOME), "utf8")) };
}

const HOME = "docs/README.md";

/**
 * @param {string} text
 * @param {string} page
 * @param {string} folder gets the files that the page links to
 * @param {string[]} pages gets the pages that the page links to
 * @returns {string}
 */
function staged(text, page, folder, pages) {
  return replaceLinks(text.replace(/<!--[\s\S]*?-->/g, ""), (target) => {
    if (/^(?:[a-z]+:|#)/.test(target)) {
      return target;
    }
    const [path = "", anchor] = target.split("#");
    const end = anchor === undefined ? "" : `#${anchor}`;
    const leadsTo = pageOf(posix.join(posix.dirname(isFolder(page) ? `${page}/x` : page), path));
    if (leadsTo.endsWith(".md") || isFolder(leadsTo)) {
      pages.push(leadsTo);
      return `/${placeOf(leadsTo)}${end}`;
    }
    if (/\.(?:png|svg)$/.test(leadsTo)) {
      copy(leadsTo, join(folder, "images", posix.basename(leadsTo)));
      return `/images/${posix.basename(leadsTo)}`;
    }
    // As .txt, so that a browser shows it whatever its language.
    copy(leadsTo, join(folder, "public/files", `${leadsTo}.txt`));
    return `/files/${leadsTo}.txt`;
  });
}

/** The path of a page in the staged folder. @param {string} page from the root, or a folder */
function placeOf(page) {
  const path = isFolder(page) ? `${page}/index.md` : page.replace(/README\.md$/, "index.md");
  return path.startsWith("docs/") ? path.slice("docs/".length) : `repository/${path}`;
}

/** A folder's README is its page. @param {string} path */
function pageOf(path) {
  const plain = path.replace(/\/$/, "");
  if (!isFolder(plain)) {
    return plain;
  }
  return readdirSync(join(root, plain)).includes("README.md") ? `${plain}/README.md` : plain;
}

/** @param {string} path from the root */
function isFolder(path) {
  return statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** A page for a folder without a README. @param {string} folder from the root */
function listOf(folder) {
  const files = readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => `- [${name}](${name})`);
  return [`# ${folder}/`, "", ...files, ""].join("\n");
}

/** @param {string} folder from the root @returns {string[]} */
function markdownBelow(folder) {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `${folder}/${name.replaceAll("\\", "/")}`)
    .sort();
}

/**
 * The sidebar: one group for each second-level heading of the home page, with the pages of its table.
 * @param {string} home its text
 * @returns {Group[]}
 */
function sidebarOf(home) {
  return home
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [heading = "", ...rows] = section.split("\n");
      const items = rows.flatMap((row) => {
        const [link] = row.startsWith("| [") ? linksOf(row) : [];
        const text = /\| \[([^\]]+)\]/.exec(row)?.[1] ?? "";
        return link === undefined ? [] : [{ text, link: siteLink(link.target) }];
      });
      return { text: heading, items };
    })
    .filter(({ items }) => items.length > 0);
}

/** @param {string} target a link of the home page */
function siteLink(target) {
  const place = placeOf(pageOf(posix.join("docs", target)));
  return `/${place.replace(/(?:index)?\.md$/, "")}`;
}

/** @param {string} path @param {string} text */
function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** @param {string} from from the root @param {string} to */
function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(join(root, from), to);
}
