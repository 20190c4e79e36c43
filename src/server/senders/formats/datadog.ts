/** What Datadog's profilers send to an agent: a form with `event.json` and the profile, compressed by zstd or gzip. */
import { createHash } from "node:crypto";
import { formParts, plainProfile } from "./body.js";
import { decodePprof } from "./pprof.js";
import { malformed, type ReceivedProfile, RequestBudget } from "./received_profile.js";
import { senderIdentity } from "./sender_identity.js";

/** Tags about the profiler, not about the program. */
const OMITTED = new Set(["profiler_config", "runtime-id", "language", "runtime", "_dd.profiler"]);

/** Throws TidemarkError. */
export async function decodeDatadog(body: Buffer, contentType: string): Promise<ReceivedProfile[]> {
  const parts = await formParts(body, contentType);
  const event = eventIn(parts.get("event")?.bytes);
  const profiles = [...parts].filter(
    ([name, { file }]) => name !== "event" && /\.pprof(\.|$)/.test(file || name),
  );
  if (profiles.length === 0) {
    malformed("the form has no part with a pprof profile");
  }
  const identity = senderIdentity(tagsOf(event));
  const budget = new RequestBudget();
  return profiles.map(([, { bytes }]) => {
    const plain = plainProfile(bytes);
    budget.take("inflated-bytes-per-request", plain.length);
    const decoded = decodePprof(plain);
    budget.takeSamples(decoded.samples);
    const [startMs, endMs] = [timeOf(event.start), timeOf(event.end)];
    return {
      source: "datadog" as const,
      ...identity,
      ...decoded,
      timeMs: decoded.timeMs || startMs,
      durationMs: decoded.durationMs || Math.max(0, endMs - startMs),
      id: createHash("sha256").update(bytes).digest("hex"),
    };
  });
}

interface DatadogEvent {
  readonly tags_profiler?: unknown;
  readonly start?: unknown;
  readonly end?: unknown;
}

function eventIn(bytes: Buffer | undefined): DatadogEvent {
  try {
    const event: unknown = JSON.parse(bytes?.toString("utf8") ?? "{}");
    return typeof event === "object" && event !== null ? event : {};
  } catch {
    return malformed("event.json is not JSON");
  }
}

/** "env:prod,service:till": values may hold colons. */
function tagsOf({ tags_profiler: tags }: DatadogEvent): [string, string][] {
  return typeof tags !== "string"
    ? []
    : tags.split(",").flatMap((tag): [string, string][] => {
        const at = tag.indexOf(":");
        const name = tag.slice(0, Math.max(0, at)).trim();
        return at <= 0 || OMITTED.has(name) ? [] : [[name, tag.slice(at + 1).trim()]];
      });
}

function timeOf(text: unknown): number {
  const timeMs = typeof text === "string" ? Date.parse(text) : Number.NaN;
  return Number.isFinite(timeMs) ? timeMs : 0;
}
