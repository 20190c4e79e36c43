/**
 * The policy of `tidemark watch`: which programs are recorded, and which of them get the agent. A YAML file:
 *
 *     server: {url: https://tidemark.internal, token_file: /run/secrets/tidemark}
 *     defaults: {warm_up: 1min, poll: 20s, agents: 20, turn: 10min, keep: 24h, disk: 2GiB}
 *     select:
 *       - match: {service: "checkout*", env: prod}
 *         agent: {share: 10%, most: 3}
 *       - match: {command: "*celery beat*"}
 *         watch: never
 *
 * The first rule that matches a program decides; a program that no rule matches gets the defaults.
 */
import { z } from "zod";
import {
  duration,
  quantity,
  type SettingsKind,
  settingsIn,
  settingsText,
  size,
} from "../model/settings/settings_file.js";

function isUrl(text: string): boolean {
  return /^https?:/i.test(text) && URL.canParse(text);
}

const share = quantity((text) => {
  const [, figure] = /^(\d{1,3}(?:\.\d+)?)\s*%$/.exec(text.trim()) ?? [];
  return figure === undefined || Number(figure) > 100 ? null : Number(figure) / 100;
}, "a share such as 10%");
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
    })
    .default({}),
  select: z
    .array(
      z.strictObject({
        match: z.strictObject({
          ...MATCHES,
          labels: z.record(z.string(), pattern).optional(),
        }),
        watch: z.enum(["never", "outside", "agent"]).default("agent"),
        agent: z
          .strictObject({ share: share.default(1), most: count.optional() })
          .default({ share: 1 }),
      }),
    )
    .default([]),
});

export type Policy = z.infer<typeof POLICY>;
export type Rule = Policy["select"][number];
export type Match = Rule["match"];

/** Without a policy file: every program that may be entered. */
export const DEFAULT_POLICY: Policy = POLICY.parse({});

const KIND: SettingsKind = {
  name: "policy",
  page: "docs/watch.md",
  place: (path) => path.replace(/^select\.(\d+)/, (_, index) => `rule ${Number(index) + 1}`),
};

/** Throws TidemarkError: the file cannot be read, is not YAML, or does not follow the form; names the place. */
export function readPolicy(path: string): Policy {
  return policyOf(settingsText(path, KIND), path);
}

/** @internal */
export function policyOf(text: string, path: string): Policy {
  return settingsIn(text, path, POLICY, KIND);
}
