/** Builds the real docs site: it contains every page, no link is broken, and its search finds text. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { buildDocs } from "./docs.mjs";
import { root } from "./setup.mjs";

/** @type {Awaited<ReturnType<typeof buildDocs>>} */
let built;
beforeAll(async () => {
  built = await buildDocs();
}, 300_000);

const filesBelow = (/** @type {string} */ folder, /** @type {string} */ ending) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .sort();

test("every page of docs/ is a page of the site", () => {
  const pages = filesBelow(join(root, "docs"), ".md");
  expect(pages.length).toBeGreaterThan(20);
  for (const page of pages) {
    const place = page.replace(/README\.md$/, "index.md").replace(/\.md$/, ".html");
    expect(existsSync(join(built.site, place)), page).toBe(true);
  }
});

test("every link of every page leads to a page, a file or a heading of the site", () => {
  const pages = filesBelow(built.site, ".html");
  const html = new Map(pages.map((page) => [page, readFileSync(join(built.site, page), "utf8")]));
  const links = pages.flatMap((page) =>
    [...(html.get(page) ?? "").matchAll(/\s(?:href|src)="([^"]*)"/g)]
      .map(([, target = ""]) => decodeURI(target.replaceAll("&amp;", "&")))
      .filter((target) => !/^(?:[a-z]+:|\/\/)/.test(target))
      .map((target) => ({ page, target })),
  );
  expect(links.length).toBeGreaterThan(1000);
  const broken = links.filter(({ page, target }) => !leadsSomewhere(page, target, html));
  expect(broken).toEqual([]);
});

/** @param {string} page @param {string} target @param {Map<string, string>} html */
function leadsSomewhere(page, target, html) {
  const [path = "", anchor] = target.split("#");
  const absolute = path.startsWith("/") ? path.slice(1) : posix.join(posix.dirname(page), path);
  const file = path === "" ? page : /(?:^|\/)$/.test(absolute) ? `${absolute}index.html` : absolute;
  if (!existsSync(join(built.site, file))) {
    return false;
  }
  return (
    anchor === undefined || anchor === "" || (html.get(file) ?? "").includes(` id="${anchor}"`)
  );
}

test("the search index holds the text of the pages", () => {
  const index = filesBelow(join(built.site, "assets"), ".js").find((name) =>
    name.includes("localSearchIndex"),
  );
  const text = readFileSync(join(built.site, "assets", index ?? ""), "utf8");
  for (const word of ["malloc_trim", "gunicorn", "pymalloc"]) {
    expect(text).toContain(word);
  }
});

test("each page of docs/ has a row on the home page, and so an entry in the sidebar", () => {
  const rows = readFileSync(join(root, "docs/README.md"), "utf8");
  const pages = readdirSync(join(root, "docs")).filter((name) => /^(?!README).*\.md$/.test(name));
  expect(pages.filter((page) => !rows.includes(`](${page})`))).toEqual([]);
  const home = readFileSync(join(built.site, "index.html"), "utf8");
  const unlisted = pages.filter((page) => {
    const target = page.replace(/\.md$/, "\\.html");
    return !new RegExp(`VPSidebarItem[\\s\\S]*href="/${target}"`).test(home);
  });
  expect(unlisted).toEqual([]);
});
