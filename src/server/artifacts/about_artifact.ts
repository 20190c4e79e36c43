import { z } from "zod";
import { type ArtifactJson, CAPTURES } from "../../model/documents/artifact_document.js";
import { ARTIFACT_ABOUT, ARTIFACT_FILE_NAME } from "../../model/wire/artifacts.js";

export const MOST_LISTED_FILES = 1_000;

/** MOST_ABOUT_BYTES bounds the length of texts. */
const text = z.string();
const whole = z.number().int().nonnegative();
const fileName = z
  .string()
  .regex(ARTIFACT_FILE_NAME)
  .refine((name) => name !== ARTIFACT_ABOUT);
const ABOUT = z.object({
  schema: z.literal("tidemark.artifact/1"),
  service: text.min(1),
  version: text,
  env: text,
  host: text,
  pid: whole,
  command: z.array(text).max(10_000),
  timeMs: z.number().nonnegative(),
  reason: text,
  lastMoment: z.boolean(),
  files: z
    .array(z.object({ name: fileName, capture: z.enum([...CAPTURES, "recording"]), pid: whole }))
    .min(1)
    .max(MOST_LISTED_FILES),
  problems: z.array(text).max(1_000),
});

/** An artifact's description, or why it is none. */
export function aboutArtifact(json: string): ArtifactJson | string {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return "it is not JSON";
  }
  const parsed = ABOUT.safeParse(value);
  if (parsed.success) {
    return parsed.data;
  }
  const [issue] = parsed.error.issues;
  return [...(issue?.path ?? []), issue?.message].join(": ");
}
