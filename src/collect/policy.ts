/**
 * The policy of `tidemark watch`: which programs are recorded, and which of them get the agent. A YAML file:
 *
 *     server: {url: https://tidemark.internal, token_file: /run/secrets/tidemark}
 *     defaults: {warm_up: 1min, poll: 20s, agents: 20, turn: 10min, keep: 24h, disk: 2GiB}
 *     select:
 *       - match: {service: "checkout*", env: prod}
 *         agent: {share: 10%, most: 3}
 *         triggers:
 *           - {when: {growth: 20%/h, for: 15min}, do: [diagnose, census]}
 *       - match: {command: "*celery beat*"}
 *         watch: never
 *
 * The first rule that matches a program decides; a program that no rule matches gets the defaults.
 */
import { readFileSync, statSync } from "node:fs";
import { isScalar, LineCounter, parseDocument } from "yaml";
import { z } from "zod";
import { bytesIn, durationIn } from "../model/base/quantities.js";
import { CAPTURES } from "../model/documents/artifact_document.js";
import { badUsage, fileNotFound, fileUnusable, TidemarkError } from "../model/errors/errors.js";
import { reasonOf } from "../model/errors/reason.js";
import { conditionOf, levelIn, rateIn } from "./conditions.js";

/** `example`: what a message asks for. */
function quantity<Value>(read: (text: string) => Value | null, example: string) {
  const written = z.union([z.string(), z.number()], { error: () => `expected ${example}` });
  return written.transform((value, context) => {
    const found = read(String(value));
    if (found === null) {
      context.addIssue({ code: "custom", message: `expected ${example}` });
      return z.NEVER;
    }
    return found;
  });
}

function isUrl(text: string): boolean {
  return /^https?:/i.test(text) && URL.canParse(text);
}

const duration = quantity(durationIn, "a duration such as 30s, 5min or 2h");
const size = quantity(bytesIn, "a size such as 512MiB or 2GiB");
const share = quantity((text) => {
  const [, figure] = /^(\d{1,3}(?:\.\d+)?)\s*%$/.exec(text.trim()) ?? [];
  return figure === undefined || Number(figure) > 100 ? null : Number(figure) / 100;
}, "a share such as 10%");
/** The same every day, in local time. */
export interface DailyWindow {
  readonly fromMinute: number;
  /** Not above `fromMinute`: it ends on the next day. */
  readonly untilMinute: number;
}

function windowIn(text: string): DailyWindow | null {
  const [, ...parts] = /^(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)$/.exec(text.trim()) ?? [];
  const [hour = 24, minute = 0, untilHour = 24, untilMinute = 0] = parts.map(Number);
  const isTime = hour < 24 && untilHour <= 24 && minute < 60 && untilMinute < 60;
  return isTime && parts.length === 4
    ? { fromMinute: hour * 60 + minute, untilMinute: (untilHour * 60 + untilMinute) % 1440 }
    : null;
}

const pattern = z.string().min(1).max(1000);
const count = z.number().int().min(0).max(10_000);

const MATCHES = {
  service: pattern.optional(),
  version: pattern.optional(),
  env: pattern.optional(),
  namespace: pattern.optional(),
  workload: pattern.optional(),
  container: pattern.optional(),
  user: pattern.optional(),
  command: pattern.optional(),
};

const TRIGGER = z
  .strictObject({
    when: z
      .strictObject({
        growth: quantity(rateIn, "a rate such as 20%/h or 100MiB/h").optional(),
        for: duration.optional(),
        rss: quantity(levelIn, "a size such as 2GiB, or 500MiB above baseline").optional(),
        limit: share.optional(),
        pressure: share.optional(),
        verdict: pattern.optional(),
        oom_kill: z.literal(true).optional(),
      })
      .transform((when, context) => {
        const condition = conditionOf(when);
        if (typeof condition === "string") {
          context.addIssue({ code: "custom", message: condition });
          return z.NEVER;
        }
        return condition;
      }),
    do: z.array(z.enum(CAPTURES)).min(1),
    cooldown: duration.default(3_600_000),
  })
  .transform((trigger) => ({
    when: trigger.when,
    captures: trigger.do,
    cooldownMs: trigger.cooldown,
  }));

const POLICY = z.strictObject({
  server: z
    .strictObject({
      url: z.string().refine(isUrl, { message: "expected an address such as https://host:7070" }),
      token_file: z.string().min(1).optional(),
    })
    .optional(),
  defaults: z
    .strictObject({
      warm_up: duration.optional(),
      poll: duration.optional(),
      agents: count.optional(),
      turn: duration.optional(),
      keep: duration.optional(),
      disk: size.optional(),
      artifacts: z
        .strictObject({
          count: count.optional(),
          disk: size.optional(),
          keep: duration.optional(),
          per_hour: count.optional(),
          cpu: share.optional(),
          max_pause: duration.optional(),
        })
        .optional(),
      triggers: z.array(TRIGGER).optional(),
    })
    .default({}),
  select: z
    .array(
      z
        .strictObject({
          match: z.strictObject({
            ...MATCHES,
            labels: z.record(z.string(), pattern).optional(),
          }),
          watch: z.enum(["never", "outside", "agent"]).default("agent"),
          agent: z
            .strictObject({
              share: share.optional(),
              most: count.optional(),
              canary: z.strictObject({ labels: z.record(z.string(), pattern) }).optional(),
              window: quantity(windowIn, "a time of day such as 02:00-02:10").optional(),
            })
            .optional(),
          triggers: z.array(TRIGGER).optional(),
        })
        .superRefine(({ watch, agent, triggers }, context) => {
          const isIdle = watch === "never" && triggers !== undefined;
          const idle =
            watch !== "agent" && agent !== undefined ? "agent" : isIdle ? "triggers" : "";
          if (idle !== "") {
            const message = `${idle} has no effect with watch: ${watch}`;
            context.addIssue({ code: "custom", message, path: [idle] });
          }
        }),
    )
    .default([]),
});

export type Policy = z.infer<typeof POLICY>;
export type Rule = Policy["select"][number];
export type Match = Rule["match"];
export type Trigger = z.infer<typeof TRIGGER>;

/** Where neither the rule nor the defaults name triggers. */
export const DEFAULT_TRIGGERS: readonly Trigger[] = z.array(TRIGGER).parse([
  { when: { limit: "90%" }, do: ["diagnose", "ledger", "census"] },
  { when: { oom_kill: true }, do: ["diagnose", "ledger"] },
]);

/** Without a policy file: every program that may be entered. */
export const DEFAULT_POLICY: Policy = POLICY.parse({});

/** The JSON Schema of the file. @internal */
export function policySchema(): object {
  return { ...z.toJSONSchema(POLICY, { io: "input" }), title: "policy of tidemark watch" };
}

/** Throws TidemarkError: the file cannot be read, is not YAML, or does not follow the form; names the place. */
export function readPolicy(path: string): Policy {
  let text: string;
  try {
    // A folder, a pipe or a device is not a policy; it is read again when it changes.
    if (!statSync(path).isFile()) {
      throw refused(path, null, "it is not an ordinary file");
    }
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof TidemarkError) {
      throw error;
    }
    const { code, message } = reasonOf(error);
    throw code === "ENOENT" ? fileNotFound(path, "policy") : fileUnusable(path, "read", message);
  }
  return policyOf(text, path);
}

const LONGEST_POLICY = 1 << 20;

/** @internal */
export function policyOf(text: string, path: string): Policy {
  if (text.length > LONGEST_POLICY) {
    throw refused(path, null, "it is larger than 1 MiB, so it is not a policy");
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [broken] = document.errors;
  if (broken !== undefined) {
    throw refused(path, lines.linePos(broken.pos[0]).line, broken.message);
  }
  const parsed = POLICY.safeParse(plainValue(document, path) ?? {});
  if (parsed.success) {
    return parsed.data;
  }
  const [issue] = parsed.error.issues;
  const keys = issue?.path.map(String) ?? [];
  const numbered = (name: string) => (_: string, index: string) => `${name} ${Number(index) + 1}`;
  const place = keys
    .join(".")
    .replace(/^select\.(\d+)/, numbered("rule"))
    .replace(/\btriggers\.(\d+)/, numbered("trigger"))
    .replace(/(?<=rule \d+|trigger \d+)\./g, ", ");
  const value = keys.length === 0 ? document.contents : document.getIn(keys, true);
  const why = issue === undefined ? "" : describeIssue(issue, value);
  throw refused(path, lineOf(document, keys, lines), `${place || "the policy"}: ${why}`);
}

const EXPECTED: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  array: "a list",
  object: "settings in the form name: value",
  record: "settings in the form name: value",
};

/** `node`: of the value in the document; undefined if it is missing. */
function describeIssue(issue: z.core.$ZodIssue, node: unknown): string {
  switch (issue.code) {
    case "unrecognized_keys":
      return `no such setting: ${issue.keys.join(", ")}`;
    case "invalid_value":
      return `expected ${issue.values.join(", ").replace(/, (?=[^,]*$)/, " or ")}`;
    case "too_small":
      return issue.origin === "string" ? "it is empty" : `expected at least ${issue.minimum}`;
    case "too_big":
      return `expected at most ${issue.maximum}${issue.origin === "string" ? " characters" : ""}`;
    case "invalid_type": {
      const expected = EXPECTED[issue.expected] ?? issue.expected;
      if (node === undefined) {
        return `it is missing: expected ${expected}`;
      }
      const isUnquoted =
        issue.expected === "string" && isScalar(node) && typeof node.value !== "string";
      return isUnquoted && node.source !== undefined && node.source !== ""
        ? `expected text: write it in quotes, "${node.source}"`
        : `expected ${expected}`;
    }
    default:
      return issue.message;
  }
}

/** The line of a value, or of the nearest one around it if it is missing. */
function lineOf(
  document: ReturnType<typeof parseDocument>,
  keys: readonly string[],
  lines: LineCounter,
): number | null {
  for (let depth = keys.length; depth > 0; depth--) {
    const node = document.getIn(keys.slice(0, depth), true) as { range?: readonly number[] } | null;
    const offset = node?.range?.[0];
    if (offset !== undefined) {
      return lines.linePos(offset).line;
    }
  }
  return null;
}

function refused(path: string, line: number | null, why: string): TidemarkError {
  const place = line === null ? path : `${path}, line ${line}`;
  return badUsage(`${place}: ${why.split("\n", 1)[0]}`, "the form of a policy is in docs/watch.md");
}

/** Aliases that expand to a huge document are refused by the library. */
function plainValue(document: ReturnType<typeof parseDocument>, path: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw refused(path, null, reasonOf(error).message);
  }
}
