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
keep_recordings: 30d
tiers: {raw: 12h, 1h: 730d}
max_disk: 50GiB
label_values: 50
artifacts: {max_size: 2GiB}
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
    keepRecordings: 30 * 86_400_000,
    tiers: { raw: 12 * 3_600_000, "1h": 730 * 86_400_000 },
    maxDisk: 50 * 2 ** 30,
    labelValues: 50,
    artifacts: {
      ...{ keepMs: 14 * 86_400_000, count: 1000 },
      ...{ mostBytes: 10 * 2 ** 30, mostArtifactBytes: 2 ** 31 },
    },
    log: "warnings",
    watch: true,
    policy: "/etc/policy.yaml",
  });
});

test("rules and receivers of alerts are read, and get names", () => {
  const { alerts } = read(`
alerts:
  every: 30s
  url: https://tidemark.internal
  rules:
    - {when: {verdict: ["*leak", gpu*]}, severity: critical}
    - {when: {growth: 50MiB/h}, for: 30min, match: {service: "check*"}}
    - {when: {growth: 50MiB/h}}
    - {name: killed, when: {oom_kills: 3, within: 6h}}
  receivers:
    - {alertmanager: "http://am:9093"}
    - {pagerduty: "https://events.example/v2/enqueue", key_file: pd.key, repeat: 1h}
`);
  expect(alerts?.rules.map(({ name }) => name)).toEqual([
    "verdict *leak or gpu*",
    "growth of at least 50.0 MiB/h",
    "growth of at least 50.0 MiB/h #2",
    "killed",
  ]);
  expect(alerts?.rules[1]).toMatchObject({ forMs: 1_800_000, severity: "warning" });
  expect(alerts?.receivers).toMatchObject([
    { name: "alertmanager am:9093", kind: "alertmanager", allowsLocal: false, secretFile: null },
    { name: "pagerduty events.example", secretFile: "/etc/tidemark/pd.key", repeatMs: 3_600_000 },
  ]);
  expect(alerts).toMatchObject({ everyMs: 30_000, externalUrl: "https://tidemark.internal" });
  expect(read("alerts: {}").alerts?.rules.length).toBeGreaterThan(5);
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
  [
    "alerts:\n  rules:\n    - {when: {}}",
    /line 3: alerts\.rules\.0\.when: expected one condition:/,
  ],
  ["alerts: {rules: [{when: {growth: 1MiB/h, silent: 1h}}]}", /expected one condition/],
  ["alerts: {rules: [{when: {growth: fast}}]}", /expected a rate such as 20%\/h or 100MiB\/h/],
  ["alerts: {rules: [{when: {silent: 1h, within: 1h}}]}", /within belongs to oom_kills/],
  ["alerts: {rules: [{when: {oom_kills: 1, within: 3d}}]}", /expected at most 24h in within/],
  ["alerts: {every: 10ms}", /expected at least 1s/],
  ["alerts: {receivers: [{}]}", /expected one of alertmanager, webhook, slack and pagerduty/],
  ["alerts: {receivers: [{webhook: here}]}", /expected an address such as https/],
  ["alerts: {receivers: [{webhook: 'https://a:b@c/'}]}", /use token_file/],
  ["alerts: {receivers: [{pagerduty: 'https://c/'}]}", /pagerduty needs key_file/],
  ["alerts: {receivers: [{slack: 'https://c/', template: '{who}'}]}", /\{who\} is unknown/],
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
  expect(Object.keys(read(example))).toHaveLength(18);
});

test("an editor's schema takes what is read, and no other setting", () => {
  const check = new Ajv2020({ strict: false }).compile(configSchema());
  expect(check({ listen: "7070", keep: "7d", watch: true, load: ["a"] })).toBe(true);
  expect(check({ keeps: "7d" })).toBe(false);
});
