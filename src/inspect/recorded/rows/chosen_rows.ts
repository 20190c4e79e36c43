/** A recording restricted to some of its rows: `--where thread=worker`. */
import { didYouMean } from "../../../model/base/near_miss.js";
import { nothingThere, oneLine, type TidemarkError } from "../../../model/errors/errors.js";
import { isUnknown } from "../../../model/profile/imported.js";
import {
  Domain,
  type Profile,
  type ProfileTables,
  type SiteTable,
} from "../../../model/profile/profile.js";
import {
  hasValue,
  labelKeys,
  ROW_KEYS,
  type RowCondition,
  selectSites,
  valueChoices,
} from "../../../model/profile/row_filter.js";
import { pickSites } from "../../../model/profile/site_columns.js";
import type { Moment, Recording } from "../../../recording/types.js";

/** Which rows of the profiles are included, and the key by which they are grouped. */
export interface RowChoice {
  /** Conditions that must all be met. */
  readonly where?: readonly RowCondition[];
  /** One of {@link ROW_KEYS}, `step`, or a key of the program's labels. */
  readonly by?: string | undefined;
}

const MOST_CHOICES = 12;

/**
 * The recording with the profiles' rows that meet all conditions. Figures that do not come from samples (RSS,
 * ledger, events) remain those of the whole program. Throws TidemarkError (TM-E014) for a key or a value that
 * does not occur.
 * @internal
 */
export function chosenRows(recording: Recording, where: readonly RowCondition[] = []): Recording {
  if (where.length === 0) {
    return recording;
  }
  const tables = recording.profileAt("end");
  for (const condition of where) {
    if (!isOfMappings(tables, condition)) {
      checkKey(recording, tables, condition.key);
    }
    if (!hasValue(tables, condition)) {
      throw unknownValue(recording, tables, condition);
    }
  }
  return new ChosenRows(recording, where);
}

/** A file may contain mappings without a distinction of the allocators (memray). */
function isOfMappings({ sites }: Profile, { key, value }: RowCondition): boolean {
  return key === "domain" && value === "mapped" && sites.domain.includes(Domain.mapped);
}

/** "thread=worker and label=ingest". @internal */
export function conditionText(where: readonly RowCondition[]): string {
  return where.map(({ key, value }) => `${key}=${value}`).join(" and ");
}

/** What other tools call a key. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  allocator: "domain",
  pid: "process",
  command: "process",
  tid: "thread",
  tag: "label",
};

/** Throws TidemarkError (TM-E014) for a key that no row has, and for one that an imported file lacks. @internal */
export function checkKey(recording: Recording, tables: ProfileTables, key: string): void {
  const { path, meta } = recording;
  const { imported } = meta;
  const known: readonly string[] = [...ROW_KEYS, ...labelKeys(tables)];
  const hasDomains = !isUnknown(imported, "python");
  if (key === "domain" && !hasDomains) {
    throw nothingThere(
      `${oneLine(path)}, imported from ${imported?.tool}, does not contain which memory Python's allocators provided`,
      "leave out domain: the figures are those of all allocators together",
    );
  }
  if (known.includes(key)) {
    return;
  }
  const offered = known.filter((name) => hasDomains || name !== "domain");
  const keys = `keys are ${offered.map((name) => oneLine(name)).join(", ")}`;
  const other = OTHER_NAMES[key.toLowerCase().replace(/s$/, "")];
  const guess = other === undefined ? didYouMean(key, known) : `did you mean ${other}?`;
  const remedy = guess === "" ? keys : `${oneLine(guess)} ${keys}`;
  if (imported !== undefined) {
    const what = key === "step" ? "memory by step" : `label '${oneLine(key)}'`;
    throw nothingThere(
      `${oneLine(path)}, imported from ${imported.tool}, contains no ${what}`,
      remedy,
    );
  }
  throw key === "step"
    ? nothingThere(
        `the program of ${oneLine(path)} does not mark steps`,
        'mark them: with tidemark.step("train"): around the body of the loop',
      )
    : nothingThere(
        `the program of ${oneLine(path)} does not set a label '${oneLine(key)}'`,
        remedy,
      );
}

function unknownValue(
  recording: Recording,
  tables: ProfileTables,
  condition: RowCondition,
): TidemarkError {
  const { key, value } = condition;
  const choices = valueChoices(tables, condition);
  const shown = choices.slice(0, MOST_CHOICES).map((choice) => oneLine(choice));
  const more = choices.length - shown.length;
  const listed = `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  const { imported } = recording.meta;
  const none =
    imported === undefined
      ? (NONE_AT_ALL[key] ?? "")
      : `the file that ${imported.tool} wrote contains no ${key}s`;
  return nothingThere(
    `nothing in ${oneLine(recording.path)} has ${oneLine(key)}=${oneLine(value)}`,
    choices.length === 0 ? none : `values that occur: ${listed}`,
  );
}

const NONE_AT_ALL: Readonly<Record<string, string>> = {
  rank: "no process had RANK in its environment: a launcher such as torchrun sets it",
  label: "the program sets no labels: with tidemark.label(KEY=VALUE): around what it does",
};

class ChosenRows implements Recording {
  readonly #whole: Recording;
  readonly #where: readonly RowCondition[];

  constructor(whole: Recording, where: readonly RowCondition[]) {
    this.#whole = whole;
    this.#where = where;
  }

  profileAt(moment: Moment): Profile {
    return this.#chosen(this.#whole.profileAt(moment));
  }

  profileOf(index: number): Profile {
    return this.#chosen(this.#whole.profileOf(index));
  }

  #chosen(profile: Profile): Profile {
    const pick = (table: SiteTable) =>
      pickSites(table, selectSites(profile, table, this.#where), profile.cohorts.length);
    return {
      ...profile,
      sites: pick(profile.sites),
      files: pick(profile.files),
      copies: pick(profile.copies),
    };
  }

  get path() {
    return this.#whole.path;
  }
  get meta() {
    return this.#whole.meta;
  }
  get processes() {
    return this.#whole.processes;
  }
  get series() {
    return this.#whole.series;
  }
  get events() {
    return this.#whole.events;
  }
  get snapshots() {
    return this.#whole.snapshots;
  }
  get snapshotTimes() {
    return this.#whole.snapshotTimes;
  }
  get holderLookups() {
    return this.#whole.holderLookups;
  }
  get censuses() {
    return this.#whole.censuses;
  }
  get memoryEnds() {
    return this.#whole.memoryEnds;
  }
  get end() {
    return this.#whole.end;
  }
  get complete() {
    return this.#whole.complete;
  }
  get damage() {
    return this.#whole.damage;
  }
  get missing() {
    return this.#whole.missing;
  }
  get limits() {
    return this.#whole.limits;
  }
  get startMs() {
    return this.#whole.startMs;
  }
  get endMs() {
    return this.#whole.endMs;
  }
}
