/** Checks links in Markdown pages: the file, folder and heading that each link names must exist. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { capture } from "../command.mjs";
import { anchorsOf, linksOf } from "../docs/markdown_links.mjs";
import { root } from "../setup.mjs";
import { say, verdicts } from "./stream.mjs";

/** Checks every link in the repository's Markdown pages. Links to other sites are not followed. */
export async function linksLeadSomewhere() {
  const tracked = ["ls-files", "-co", "--exclude-standard", "*.md"];
  const { output } = await capture("git", tracked, { cwd: root });
  const pages = output.split("\n").filter((page) => page !== "" && existsSync(join(root, page)));
  const broken = brokenLinks(pages, root);
  for (const line of broken) {
    say(line);
  }
  return verdicts([pages.length > 0 && broken.length === 0]);
}

/**
 * @param {string[]} pages from `folder`
 * @param {string} folder
 * @returns {string[]} a line for each broken link
 */
export function brokenLinks(pages, folder) {
  /** @type {Map<string, Set<string>>} page -> its anchors */
  const known = new Map();
  const anchors = (/** @type {string} */ page) => {
    const found = known.get(page) ?? anchorsOf(readFileSync(join(folder, page), "utf8"));
    known.set(page, found);
    return found;
  };
  return pages.flatMap((page) =>
    linksOf(readFileSync(join(folder, page), "utf8"))
      .filter(({ target }) => !/^[a-z]+:/.test(target))
      .flatMap(({ target, line }) => {
        const [path = "", anchor] = target.split("#");
        const file = path === "" ? page : posix.join(posix.dirname(page), path);
        const place = `${page}:${line}: ${target}`;
        if (path.startsWith("/") || !existsSync(join(folder, file))) {
          return [`${place} leads to a file that is not there`];
        }
        if (anchor === undefined) {
          return [];
        }
        const isPage = file.endsWith(".md") && statSync(join(folder, file)).isFile();
        return isPage && anchors(file).has(anchor)
          ? []
          : [`${place} leads to a heading that is not there`];
      }),
  );
}
