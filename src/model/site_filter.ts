/** Which sites count: by process, thread, label, allocator, and text in their stacks. */
import type { Domain, Profile, ProfileTables } from "./profile.js";
import type { LabelId, ProcessIndex, ThreadIndex } from "./units.js";

/** What is absent takes all. */
export interface SiteFilter {
  readonly process?: ProcessIndex;
  readonly thread?: ThreadIndex;
  readonly domain?: Domain;
  /** A row of the label table: sites under any label whose chain holds its key and value. */
  readonly label?: LabelId;
  /** Part of a function's or file's name, in any case, of any frame of the stack. */
  readonly text?: string;
}

/** Rows of the profile's sites that pass, ascending. */
export function selectSites(profile: Profile, filter: SiteFilter): Uint32Array {
  const { sites } = profile;
  const labels = filter.label === undefined ? null : labelsUnder(profile, filter.label);
  const stacks = filter.text === undefined ? null : stacksWith(profile, filter.text);
  const rows = new Uint32Array(sites.length);
  let count = 0;
  for (let site = 0; site < sites.length; site++) {
    if (
      (filter.process === undefined || sites.process[site] === filter.process) &&
      (filter.thread === undefined || sites.thread[site] === filter.thread) &&
      (filter.domain === undefined || sites.domain[site] === filter.domain) &&
      (labels === null || labels[sites.label[site]!] === 1) &&
      (stacks === null || stacks[sites.stack[site]!] === 1)
    ) {
      rows[count++] = site;
    }
  }
  return rows.subarray(0, count);
}

function labelsUnder({ labels }: ProfileTables, wanted: LabelId): Uint8Array {
  const under = new Uint8Array(labels.length);
  for (let label = 1; label < labels.length; label++) {
    const same =
      labels.key[label] === labels.key[wanted] && labels.value[label] === labels.value[wanted];
    under[label] = same || under[labels.parent[label]!] === 1 ? 1 : 0;
  }
  return under;
}

/** By stack: 1 where one of its frames matches. Strings are compared once, then only numbers. */
function stacksWith({ strings, frames, stacks }: ProfileTables, text: string): Uint8Array {
  const wanted = text.toLowerCase();
  const stringMatches = Uint8Array.from(strings, (string) =>
    string.toLowerCase().includes(wanted) ? 1 : 0,
  );
  const matches = new Uint8Array(stacks.length);
  for (let stack = 1; stack < stacks.length; stack++) {
    const frame = stacks.frame[stack]!;
    matches[stack] =
      matches[stacks.parent[stack]!]! |
      stringMatches[frames.function[frame]!]! |
      stringMatches[frames.file[frame]!]!;
  }
  return matches;
}
