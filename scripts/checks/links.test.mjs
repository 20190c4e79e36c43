/** Tests the link check on its own pages. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { brokenLinks } from "./links.mjs";

const folder = mkdtempSync(join(tmpdir(), "tidemark-links-"));
mkdirSync(join(folder, "docs"));
afterAll(() => rmSync(folder, { recursive: true }));
writeFileSync(
  join(folder, "docs/other.md"),
  "# Other\n## Does `gc.collect()` help?\n## Twice\n## Twice\n```\n## not a heading\n```\n",
);

/** @param {string} text of docs/page.md */
function broken(text) {
  writeFileSync(join(folder, "docs/page.md"), text);
  return brokenLinks(["docs/page.md"], folder).map((line) => line.replace("docs/page.md:", ""));
}

test.each([
  "[page](other.md)",
  "[heading](other.md#does-gccollect-help)",
  "[the second of two](other.md#twice-1)",
  "# Here\n[own](#here)",
  "[up](../docs/other.md)",
  "[`code`](other.md)",
  "[folder](../docs/)",
  "[elsewhere](https://example.org/nothing.md)",
  "```\n[in a block](missing.md)\n```",
  "`[in code](missing.md)`",
  "<!-- [in a comment](missing.md) -->",
])("leads somewhere: %s", (text) => {
  expect(broken(text)).toEqual([]);
});

test.each([
  ["[page](missing.md)", "1: missing.md leads to a file that is not there"],
  ["\n\n[`code`](missing.md)", "3: missing.md leads to a file that is not there"],
  ["![picture](images/missing.png)", "1: images/missing.png leads to a file that is not there"],
  ["[heading](other.md#missing)", "1: other.md#missing leads to a heading that is not there"],
  [
    "[block](other.md#not-a-heading)",
    "1: other.md#not-a-heading leads to a heading that is not there",
  ],
  ["[third](other.md#twice-2)", "1: other.md#twice-2 leads to a heading that is not there"],
  ["[own](#missing)", "1: #missing leads to a heading that is not there"],
])("leads nowhere: %s", (text, line) => {
  expect(broken(text)).toEqual([line]);
});
