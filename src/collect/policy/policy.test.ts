/** A policy is read as written, and a wrong one is refused with its line. */
import { expect, test } from "vitest";
import { boundsOf } from "./bounds.js";
import { DEFAULT_POLICY, policyOf, readPolicy } from "./policy.js";

const read = (text: string) => policyOf(text, "policy.yaml");

test("durations, sizes and shares are as people write them", () => {
  const policy = read(`
defaults: {warm_up: 30s, agents: 3, turn: 5min, keep: 2h, disk: 512MiB}
select: [{match: {env: prod}, agent: {share: 2.5%}}]
`);
  expect(boundsOf(policy)).toMatchObject({
    warmUpMs: 30_000,
    pollMs: 20_000,
    agents: 3,
    turnMs: 300_000,
    keepMs: 7_200_000,
    mostBytes: 2 ** 29,
  });
  expect(policy.select).toEqual([
    { match: { env: "prod" }, watch: "agent", agent: { share: 0.025 } },
  ]);
});

test("an empty file is the default policy", () => {
  expect(read("")).toEqual(DEFAULT_POLICY);
  expect(read("# nothing yet\n")).toEqual(DEFAULT_POLICY);
});

test.each([
  ["defaults: {agents: many}", /line 1: defaults\.agents: expected a number;/],
  ["defaults:\n  warm_up: soon", /line 2: defaults\.warm_up: expected a duration such as 30s/],
  ["defaults: {disk: -1}", /defaults\.disk: expected a size/],
  [
    "select: [{match: {}, agent: {share: 110%}}]",
    /rule 1, agent\.share: expected a share such as 10%/,
  ],
  ["select:\n- match: {}\n- watch: never", /line 3: rule 2, match: it is missing/],
  [
    "select:\n- match: {}\n  watch: maybe",
    /line 3: rule 1, watch: expected never, outside or agent;/,
  ],
  ["defaults: {agents: -1}", /defaults\.agents: expected at least 0;/],
  ["defaults: {agents: 1.5}", /defaults\.agents: expected a whole number;/],
  ["defaults: {poll: 1ms}", /defaults\.poll: expected at least 1s/],
  ["defaults: {turn: 1s}", /defaults\.turn: expected at least 10s/],
  ["defaults: {poll: [1s]}", /defaults\.poll: expected a duration such as 30s/],
  ["select: {}", /line 1: select: expected a list;/],
  ["select: [{match: {servise: x}}]", /rule 1, match: no such setting: servise;/],
  ["select: [{match: {service: ''}}]", /rule 1, match\.service: it is empty;/],
  ["select: [{match: {version: 1.10}}]", /version: expected text: write it in quotes, "1\.10";/],
  ["select: [{match: {labels: {track: 1}}}]", /labels\.track: .* in quotes, "1";/],
  [
    "select: [{match: {}, watch: outside, agent: {share: 5%}}]",
    /line 1: rule 1, agent: agent has no effect with watch: outside;/,
  ],
  [
    "select: [{match: {}, triggers: [{when: {growth: 5%}, do: [ledger]}]}]",
    /rule 1, trigger 1, when\.growth: expected a rate such as 20%\/h/,
  ],
  [
    "defaults: {triggers: [{when: {rss: 1GiB, limit: 5%}, do: [ledger]}]}",
    /trigger 1, when: expected one condition: growth, rss/,
  ],
  [
    "defaults: {triggers: [{when: {rss: 1GiB}, do: []}]}",
    /trigger 1, do: expected at least 1 entry;/,
  ],
  [
    "defaults: {triggers: [{when: {oom_kill: true}, do: [dance]}]}",
    /trigger 1, do\.0: expected diagnose, ledger, census, snapshot, stacks, gpu or flight_recorder;/,
  ],
  [
    "select: [{match: {}, agent: {window: 25:00-26:00}}]",
    /rule 1, agent\.window: expected a time of day such as 02:00-02:10;/,
  ],
  ["selects: []", /the policy: no such setting: selects;/],
  ["a: [1", /line 1: /],
  ["- 1\n- 2", /policy\.yaml/],
  ["just words", /policy\.yaml/],
])("%j is refused in one line", (text, expected) => {
  let message = "";
  try {
    read(text);
  } catch (error) {
    message = (error as Error).message;
  }
  expect(message).toMatch(expected);
  expect(message).not.toContain("\n");
  expect(message.length).toBeLessThan(400);
});

test("one line names several mistakes, in the order of the file, and counts the others", () => {
  const text = `defaults: {poll: 1ms, agents: many}
select:
- {match: {servise: x}, agent: {share: 110%}}
- {match: {}, watch: maybe}
- {match: {}, watch: perhaps}
`;
  expect(() => read(text)).toThrow(
    /line 1: defaults\.\w+: [^;]+; line 1: defaults\.\w+: [^;]+; line 3: rule 1, [^;]+; line 3: rule 1, [^;]+; and 2 more;/,
  );
});

test("aliases that would expand to a huge document are refused", () => {
  const levels = Array.from(
    { length: 12 },
    (_, n) => `a${n + 1}: &a${n + 1} [${Array(10).fill(`*a${n}`)}]`,
  );
  expect(() => read(`a0: &a0 x\n${levels.join("\n")}`)).toThrow(/policy\.yaml/);
});

test("a file that is too large is refused before it is read as YAML", () => {
  expect(() => read(`x: ${"y".repeat(2 << 20)}`)).toThrow(/larger than 1 MiB/);
});

test("a file that is missing or a folder is named", () => {
  expect(() => readPolicy("/nowhere/policy.yaml")).toThrow(/no such policy/);
  expect(() => readPolicy("/")).toThrow(/TM-E002 \/: it is not an ordinary file/);
  expect(() => readPolicy("/dev/zero")).toThrow(/it is not an ordinary file/);
  expect(() => read("server: {url: nonsense}")).toThrow(/server\.url: expected an address/);
});
