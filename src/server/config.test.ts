/** A configuration is read as written, and a wrong one is refused with its line. */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { configOf, configSchema } from "./config.js";

const read = (text: string) => configOf(text, "/etc/tidemark/serve.yaml");

test("every setting is read, and paths count from the file's folder", () => {
  const config = read(`
listen: "[::1]:7071"
store: duckdb:data
load: [old.tidemark, /srv/new.tidemark]
token_file: tokens
keep: 7d
max_disk: 50GiB
log: warnings
watch: true
policy: ../policy.yaml
`);
  expect(config).toEqual({
    listen: { host: "::1", port: 7071 },
    store: "duckdb:/etc/tidemark/data",
    load: ["/etc/tidemark/old.tidemark", "/srv/new.tidemark"],
    tokenFile: "/etc/tidemark/tokens",
    keep: 7 * 86_400_000,
    maxDisk: 50 * 2 ** 30,
    log: "warnings",
    watch: true,
    policy: "/etc/policy.yaml",
  });
});

test("an empty file sets nothing", () => {
  expect(read("# nothing yet\n")).toEqual({});
  expect(read("listen: 7071")).toEqual({ listen: { host: "127.0.0.1", port: 7071 } });
});

test.each([
  ["keep: 7d\nmax_disc: 1GiB", /line 2: the configuration: no such setting: max_disc;/],
  ["keep: soon", /line 1: keep: expected a duration such as 30s/],
  ["\nmax_disk: -1", /line 2: max_disk: expected a size/],
  ["listen: here", /line 1: listen: expected an address such as 127\.0\.0\.1:7070/],
  ["listen: 127.0.0.1:99999", /line 1: listen: expected an address/],
  ["log: all", /line 1: log: expected requests or warnings;/],
  ["load: one.tidemark", /line 1: load: expected a list;/],
  ["watch: yes please", /line 1: watch: expected true or false;/],
  ["store: ''", /line 1: store: it is empty;/],
  ["token_file: 12", /line 1: token_file: expected text: write it in quotes, "12";/],
  ["keep: [1d", /line 1: /],
  ["- keep", /serve\.yaml/],
  [`keep: 1d\nkeep: 2d`, /line 2: .*unique/],
  [`a: &a [1,1]\nb: &b [*a,*a]\nc: [*b,*b]`, /no such setting: a, b, c/],
])("%j is refused in one line", (text, expected) => {
  let message = "";
  try {
    read(text);
  } catch (error) {
    ({ message } = error as Error);
  }
  expect(message).toMatch(expected);
  expect(message).not.toContain("\n");
});

test("the example of the documentation follows the form", () => {
  const page = readFileSync(new URL("../../docs/server.md", import.meta.url), "utf8");
  const [, example = ""] = /```yaml\n(# yaml-language-server[^`]*)```/.exec(page) ?? [];
  expect(Object.keys(read(example))).toHaveLength(9);
});

test("an editor's schema takes what is read, and no other setting", () => {
  const check = new Ajv2020({ strict: false }).compile(configSchema());
  expect(check({ listen: "7070", keep: "7d", watch: true, load: ["a"] })).toBe(true);
  expect(check({ keeps: "7d" })).toBe(false);
});
