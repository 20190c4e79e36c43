/**
 * The configuration of `tidemark serve --config FILE`: the options of the command in a YAML file.
 *
 *     listen: 0.0.0.0:7070
 *     store: duckdb:/var/lib/tidemark
 *     token_file: /etc/tidemark/tokens
 *     keep: 30d
 *     tiers: {raw: 48h, 10m: 14d, 1h: 90d}
 *     max_disk: 50GiB
 *     alerts: (alerts/rules.ts, alerts/receivers.ts)
 *     actions: {service_limit: 4/h, fleet_limit: 20/h, evict_namespaces: [shop]}
 *     sizes: {margin: 20%, price_per_gib_month: 2.50, currency: EUR}
 *     artifacts: {keep: 14d, count: 1000, max_disk: 10GiB, max_size: 1GiB}
 */
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { addressIn } from "../model/base/quantities.js";
import type { Bytes, Millis } from "../model/base/units.js";
import { limitIn } from "../model/settings/limit.js";
import { shareIn } from "../model/settings/rate.js";
import {
  duration,
  quantity,
  type SettingsKind,
  settingsIn,
  settingsText,
  size,
} from "../model/settings/settings_file.js";
import { POD_NAMESPACE } from "../model/wire/action_record.js";
import type { Retention } from "../store/index.js";
import { type ActionLimits, USUAL_ACTION_LIMITS } from "./actions/action_limits.js";
import { type AlertSettings, USUAL_ALERTS } from "./alerts/alerting.js";
import { RECEIVER, receiversOf } from "./alerts/receivers.js";
import { RULE, rulesOf } from "./alerts/rules.js";
import { type SizeSettings, USUAL_SIZES } from "./answers/sizes.js";
import { type ArtifactLimits, USUAL_ARTIFACT_LIMITS } from "./artifacts/artifact_files.js";

const file = z.string().min(1).max(4096);

const limit = quantity(limitIn, "a limit such as 4/h or 10/d");
const MOST_RULES = 200;
const SHORTEST_EVALUATION_MS: Millis = 1_000;

const ALERTS = z.strictObject({
  every: duration
    .refine((ms) => ms >= SHORTEST_EVALUATION_MS, { error: "expected at least 1s" })
    .optional(),
  url: z
    .string()
    .refine((text) => /^https?:\/\//i.test(text) && URL.canParse(text), {
      error: "expected an address such as https://tidemark.internal",
    })
    .optional(),
  rules: z.array(RULE).max(MOST_RULES).optional(),
  receivers: z.array(RECEIVER).max(MOST_RULES).optional(),
});

const CONFIG = z.strictObject({
  listen: quantity(addressIn, "an address such as 127.0.0.1:7070 or [::1]:7070").optional(),
  store: z.string().min(1).max(4096).optional(),
  files: file.optional(),
  load: z.array(file).optional(),
  token_file: file.optional(),
  keep: duration.optional(),
  keep_recordings: duration.optional(),
  label_values: z.number().int().min(1).max(100_000).optional(),
  tiers: z
    .strictObject({
      raw: duration.optional(),
      "10m": duration.optional(),
      "1h": duration.optional(),
    })
    .optional(),
  max_disk: size.optional(),
  log: z.enum(["requests", "warnings"]).optional(),
  watch: z.boolean().optional(),
  policy: file.optional(),
  collectors: z
    .strictObject({ policy: file.optional(), ask_for_agents: z.boolean().optional() })
    .optional(),
  alerts: ALERTS.optional(),
  actions: z
    .strictObject({
      service_limit: limit.optional(),
      fleet_limit: limit.optional(),
      evict_namespaces: z.array(POD_NAMESPACE).max(1_000).optional(),
    })
    .optional(),
  sizes: z
    .strictObject({
      margin: quantity(shareIn, "a share of 0% to 100%, such as 20%").optional(),
      price_per_gib_month: z.number().min(0).max(1_000_000).optional(),
      currency: z.string().min(1).max(8).optional(),
    })
    .refine((sizes) => sizes.currency === undefined || sizes.price_per_gib_month !== undefined, {
      error: "expected price_per_gib_month beside currency",
    })
    .optional(),
  artifacts: z
    .strictObject({
      keep: duration.optional(),
      count: z.number().int().min(1).max(100_000).optional(),
      max_disk: size.optional(),
      max_size: size.optional(),
    })
    .optional(),
});

/** Options of `tidemark serve` by their names in the program; options that the file does not set are absent. */
export interface ServeConfig {
  readonly listen?: { readonly host: string; readonly port: number };
  readonly store?: string;
  readonly files?: string;
  readonly load?: string[];
  readonly tokenFile?: string;
  readonly keep?: Millis;
  readonly keepRecordings?: Millis;
  readonly labelValues?: number;
  readonly tiers?: Partial<Retention["tiers"]>;
  readonly maxDisk?: Bytes;
  readonly log?: "requests" | "warnings";
  readonly watch?: boolean;
  readonly policy?: string;
  /** The policy that collectors get. */
  readonly handedPolicy?: string;
  /** Whether the diagnosis may ask collectors for the agent. */
  readonly asksForAgents?: boolean;
  readonly alerts?: AlertSettings;
  readonly actions?: ActionLimits;
  readonly artifacts?: ArtifactLimits;
  readonly sizes?: SizeSettings;
}

const KIND: SettingsKind = { name: "configuration", page: "docs/server.md" };

/**
 * Paths in the file are relative to its folder. Throws TidemarkError if the file cannot be read, is not YAML, or has
 * an invalid setting; the error names the line.
 */
export function readConfig(path: string): ServeConfig {
  return configOf(settingsText(path, KIND), path);
}

/** @internal */
export function configOf(text: string, path: string): ServeConfig {
  const set = settingsIn(text, path, CONFIG, KIND);
  const beside = (name: string) => resolve(dirname(path), name);
  const config: { [Name in keyof ServeConfig]: ServeConfig[Name] | undefined } = {
    listen: set.listen,
    store: set.store?.replace(/^duckdb:(.+)$/, (_, folder) => `duckdb:${beside(folder)}`),
    files: set.files === undefined ? undefined : beside(set.files),
    load: set.load?.map(beside),
    tokenFile: set.token_file === undefined ? undefined : beside(set.token_file),
    keep: set.keep,
    keepRecordings: set.keep_recordings,
    labelValues: set.label_values,
    tiers: set.tiers as ServeConfig["tiers"],
    maxDisk: set.max_disk,
    log: set.log,
    watch: set.watch,
    policy: set.policy === undefined ? undefined : beside(set.policy),
    asksForAgents: set.collectors?.ask_for_agents,
    handedPolicy: set.collectors?.policy === undefined ? undefined : beside(set.collectors.policy),
    alerts: set.alerts === undefined ? undefined : alertsOf(set.alerts, beside),
    actions:
      set.actions === undefined
        ? undefined
        : {
            service: set.actions.service_limit ?? USUAL_ACTION_LIMITS.service,
            fleet: set.actions.fleet_limit ?? USUAL_ACTION_LIMITS.fleet,
            evictNamespaces: set.actions.evict_namespaces ?? USUAL_ACTION_LIMITS.evictNamespaces,
          },
    artifacts:
      set.artifacts === undefined
        ? undefined
        : {
            keepMs: set.artifacts.keep ?? USUAL_ARTIFACT_LIMITS.keepMs,
            count: set.artifacts.count ?? USUAL_ARTIFACT_LIMITS.count,
            mostBytes: set.artifacts.max_disk ?? USUAL_ARTIFACT_LIMITS.mostBytes,
            mostArtifactBytes: set.artifacts.max_size ?? USUAL_ARTIFACT_LIMITS.mostArtifactBytes,
          },
    sizes: set.sizes === undefined ? undefined : sizesOf(set.sizes),
  };
  const known = Object.entries(config).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known) as ServeConfig;
}

function alertsOf(
  { every, url, rules, receivers }: z.infer<typeof ALERTS>,
  beside: (name: string) => string,
): AlertSettings {
  return {
    rules: rules === undefined ? USUAL_ALERTS.rules : rulesOf(rules),
    receivers: receiversOf(receivers ?? [], beside),
    everyMs: every ?? USUAL_ALERTS.everyMs,
    externalUrl: url ?? null,
  };
}

function sizesOf({
  margin,
  price_per_gib_month: price,
  currency,
}: NonNullable<z.infer<typeof CONFIG>["sizes"]>): SizeSettings {
  return {
    marginShare: margin ?? USUAL_SIZES.marginShare,
    ...(price === undefined ? {} : { price: { perGibMonth: price, currency: currency ?? "USD" } }),
  };
}

/** @internal The settings as a JSON Schema, for editors: docs/serve-config.schema.json. */
export function configSchema(): object {
  return z.toJSONSchema(CONFIG, { io: "input" });
}
