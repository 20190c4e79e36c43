/** An artifact's description within what a server takes: `MOST_ABOUT_BYTES` in all, each text at most this long. */
import type { ArtifactJson } from "../../model/documents/artifact_document.js";

const LONGEST_TEXT = 4_096;
/** Of all texts of a list: with the most that JSON and UTF-8 make of a character, two lists have less than 1 MiB. */
const LONGEST_LIST = 64 << 10;
/** Below what the server takes. */
const MOST_TEXTS = 1_000;

export function boundedAbout(about: ArtifactJson): ArtifactJson {
  const { service, version, env, host, command, reason, problems } = about;
  return {
    ...about,
    service: shortened(service),
    version: shortened(version),
    env: shortened(env),
    host: shortened(host),
    command: shortenedList(command),
    reason: shortened(reason),
    problems: shortenedList(problems),
  };
}

/** "python -c a long sc…" */
function shortened(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT - 1)}…` : text;
}

/** If the list is too long, "…" stands for the rest. */
function shortenedList(texts: readonly string[]): string[] {
  const kept: string[] = [];
  let length = 0;
  for (const text of texts.map(shortened)) {
    length += text.length;
    if (length > LONGEST_LIST || kept.length === MOST_TEXTS - 1) {
      return [...kept, "…"];
    }
    kept.push(text);
  }
  return kept;
}
