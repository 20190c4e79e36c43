import { expect, test } from "vitest";
import { withoutLinks } from "./long_description.mjs";
import { newerSymbols } from "./native.mjs";
import { payload, thirdPartyLicenses } from "./payload.mjs";

test("symbols that glibc 2.28 lacks are named with their versions", () => {
  const line = (/** @type {string} */ name) =>
    `     3: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND ${name} (2)\n`;
  const table = [
    "malloc@GLIBC_2.2.5",
    "fcntl64@GLIBC_2.28",
    "strtol@GLIBC_2.38",
    "x@GLIBC_PRIVATE",
  ];
  expect(newerSymbols(table.map(line).join(""))).toEqual(["strtol@GLIBC_2.38", "x@GLIBC_PRIVATE"]);
  expect(newerSymbols(line("y@GLIBC_ABI_DT_RELR"))).toEqual(["y@GLIBC_ABI_DT_RELR"]);
});

test("a registry's page has no pictures and no links to files", () => {
  const readme =
    "One [page](docs/x.md), [a site](https://a.example).\n\n![A picture](docs/p.png)\n\nEnd\n";
  expect(withoutLinks(readme)).toBe("One page, [a site](https://a.example).\n\nEnd\n");
});

test("the licences cover a package and its dependencies, the nearest version first", () => {
  const text = thirdPartyLicenses(["ink"]);
  expect(text).toMatch(/^ink \d.*\(MIT\)$/m);
  expect(text).toMatch(/^yoga-layout \d/m);
  // Installed twice: ink has a version of its own.
  expect(text.match(/^string-width \d+/gm)).toEqual(
    expect.arrayContaining(["string-width 7", "string-width 8"]),
  );
  const entries = text.split(/^={72}$/m).slice(1);
  expect(entries.length).toBeGreaterThan(10);
  for (const entry of entries) {
    expect(entry).toMatch(/copyright|licen[cs]e/i);
  }
});

test("the installed package contains no tests, and its launcher is executable", () => {
  const files = payload();
  expect(files.find(({ path }) => path === "bin/tidemark")?.executable).toBe(true);
  expect(files.filter(({ path }) => /\.test\.|\/tests?\/|__pycache__/.test(path))).toEqual([]);
});
