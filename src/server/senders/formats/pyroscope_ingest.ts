/**
 * `POST /ingest` of Pyroscope: `name=service.inuse_space{key=value,...}`, `from`, `until`, `format`; the body is a pprof
 * profile, a form with one, or folded stacks.
 */
import { createHash } from "node:crypto";
import { badUsage, oneLine } from "../../../model/errors/errors.js";
import { formParts, plainProfile } from "./body.js";
import { decodeFolded } from "./folded.js";
import { decodePprof } from "./pprof.js";
import {
  type DecodedProfile,
  figureOf,
  malformed,
  PROFILE_LIMITS,
  type ReceivedProfile,
  withinLimit,
} from "./received_profile.js";
import { senderIdentity } from "./sender_identity.js";

const TEXT_FORMATS = { "": "folded", groups: "folded", folded: "folded", lines: "lines" } as const;
const MEMORY_TYPES = ["inuse_space", "inuse_objects", "alloc_space", "alloc_objects"];
const LATEST_SECONDS = 1e11;

/** Throws TidemarkError. */
export async function decodeIngest(
  body: Buffer,
  query: URLSearchParams,
  contentType: string,
): Promise<ReceivedProfile[]> {
  const { application, labels } = nameIn(query.get("name") ?? "");
  const format = query.get("format") ?? "";
  const isForm = contentType.startsWith("multipart/");
  const isPprof = format === "pprof" || (isForm && format === "");
  if (!isPprof && !Object.hasOwn(TEXT_FORMATS, format)) {
    throw badUsage(
      `the format ${oneLine(format, 40)} is not supported`,
      "send pprof, folded, groups or lines",
    );
  }
  const profile = isForm ? await profilePart(body, contentType) : body;
  const plain = plainProfile(profile);
  const { service, decoded } = isPprof
    ? { service: application, decoded: decodePprof(plain) }
    : textProfile(plain, application, format as keyof typeof TEXT_FORMATS);
  const fromMs = timeIn(query.get("from"));
  const untilMs = timeIn(query.get("until"));
  const from = fromMs || untilMs;
  const about = [query.get("name"), query.get("from"), query.get("until"), format].join("\n");
  return [
    {
      source: "pyroscope",
      ...senderIdentity([["service_name", service], ...labels]),
      ...decoded,
      timeMs: decoded.timeMs || from,
      durationMs: decoded.durationMs || (fromMs > 0 ? Math.max(0, untilMs - fromMs) : 0),
      id: createHash("sha256").update(about).update(profile).digest("hex"),
    },
  ];
}

async function profilePart(body: Buffer, contentType: string): Promise<Buffer> {
  const parts = await formParts(body, contentType);
  return parts.get("profile")?.bytes ?? malformed("the form has no part called profile");
}

/** The last part of the name determines the figure of folded stacks. */
function textProfile(
  plain: Buffer,
  application: string,
  format: keyof typeof TEXT_FORMATS,
): { service: string; decoded: DecodedProfile } {
  const at = application.lastIndexOf(".");
  const type = application.slice(at + 1);
  const figure = at > 0 && MEMORY_TYPES.includes(type) ? figureOf(type) : null;
  if (figure === null) {
    throw badUsage(
      "the name of folded stacks does not end with a type of memory",
      `name=SERVICE.TYPE, where TYPE is one of ${MEMORY_TYPES.join(", ")}`,
    );
  }
  const text = plain.toString("utf8");
  const decoded = decodeFolded(text, { figure, format: TEXT_FORMATS[format] });
  return { service: application.slice(0, at), decoded };
}

/** "service{key=value,key=value}": values are neither quoted nor escaped. */
function nameIn(name: string): { application: string; labels: [string, string][] } {
  withinLimit("name-bytes", Math.max(0, name.length - 60 * PROFILE_LIMITS["name-bytes"]));
  const [, application = "", inside = ""] = /^([^{}]+)(?:\{([^{}]*)\})?$/.exec(name.trim()) ?? [];
  if (application === "") {
    throw badUsage("the parameter name is missing or broken", "name=SERVICE{key=value,...}");
  }
  const labels = inside.split(",").flatMap((pair): [string, string][] => {
    const at = pair.indexOf("=");
    if (pair.trim() !== "" && at <= 0) {
      throw badUsage("a label of the parameter name has no =", "name=SERVICE{key=value,...}");
    }
    return at <= 0 ? [] : [[pair.slice(0, at).trim(), pair.slice(at + 1).trim()]];
  });
  return { application: application.trim(), labels };
}

/** Seconds, ms, µs or ns since 1970, by their size. 0: none. */
function timeIn(text: string | null): number {
  if (text === null || text === "") {
    return 0;
  }
  const number = /^\d{1,19}(\.\d+)?$/.test(text)
    ? Number(text)
    : malformed("from or until is not a time");
  for (const [most, perMs] of [
    [LATEST_SECONDS, 1e-3],
    [LATEST_SECONDS * 1e3, 1],
    [LATEST_SECONDS * 1e6, 1e3],
  ] as const) {
    if (number < most) {
      return Math.floor(number / perMs);
    }
  }
  return Math.floor(number / 1e6);
}
