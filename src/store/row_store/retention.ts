/**
 * Keeps a store within its age and size: days move to coarser tiers as they get older; beyond the size, the finest tier
 * shrinks first, and only then the oldest day goes.
 */
import type { Millis, TimeMs } from "../../model/base/units.js";
import { oneLine } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { mayPass } from "../../model/errors/server_errors.js";
import { dayNamed } from "../duckdb/days.js";
import { rollStatements } from "../duckdb/queries/roll_sql.js";
import type { Day, RowDatabase } from "../duckdb/row_database.js";
import type { Retained, Retention } from "../interface/store.js";
import { isCoarser, MERGED_TIER, nextTier, TIER_MS, type Tier } from "../interface/tiers.js";

const DAY_MS: Millis = 86_400_000;

/** Profiles of runs that are longer than 50 days hold for longer; rows that are that late are rare. */
const LONGEST_CARRY_DAYS = 8;
const LONGEST_REASON = 300;

/**
 * "busy": rows of the day arrived meanwhile; the day is as before, and is rolled up another time. "closing": the store
 * is being closed. "away": the database did not answer, or refused; nothing is removed for that. "failed": for example, a
 * disk that is full has no room for the coarser file.
 */
type RollOutcome = "done" | "busy" | "closing" | "away" | "failed";

/** Runs work while nothing else is written. */
type Alone = <Result>(work: () => Promise<Result>) => Promise<Result>;

export async function retainDays(
  database: RowDatabase,
  alone: Alone,
  { keepMs, mostBytes, tiers }: Retention,
  nowMs: TimeMs,
): Promise<Omit<Retained, "notSwept">> {
  const removed: Day[] = [];
  const rolled: { day: Day; tier: Tier }[] = [];
  const failed = new Map<Day, string>();
  const remove = async (day: Day) => {
    await alone(() => database.remove(day));
    await database.measure();
    removed.push(day);
  };
  const roll = async (day: Day, tier: Tier): Promise<RollOutcome> => {
    try {
      if (!(await rollDay(database, alone, day, tier))) {
        return "busy";
      }
    } catch (error) {
      if (database.isEnding) {
        return "closing";
      }
      failed.set(day, oneLine(reasonOf(error).message, LONGEST_REASON));
      return mayPass(error) ? "away" : "failed";
    }
    await database.measure();
    rolled.push({ day, tier });
    return "done";
  };
  await alone(() => database.closeRetired());
  await database.measure();
  const oldest = dayNamed(nowMs - keepMs);
  for (const day of database.days) {
    if (day < oldest) {
      await remove(day);
    }
  }
  for (const day of database.days) {
    const tier = tierAt(nowMs - Date.parse(day) - DAY_MS, tiers);
    if (isCoarser(tier, database.tierOf(day)) && !database.isEnding) {
      await roll(day, tier);
    }
  }
  while (!database.isEnding && bytesOf(database) > mostBytes && database.days.length > 1) {
    const older = database.days.slice(0, -1);
    const fine = finest(database, older);
    const tier = fine === undefined ? null : nextTier(database.tierOf(fine));
    const outcome = fine === undefined || tier === null ? "failed" : await roll(fine, tier);
    if (outcome === "failed") {
      await remove(older[0] as Day);
    } else if (outcome !== "done") {
      break;
    }
  }
  return { removed, rolled, failed: [...failed].map(([day, reason]) => ({ day, reason })) };
}

export function bytesOf(database: RowDatabase): number {
  return database.days.reduce((sum, day) => sum + database.bytesOf(day), database.metaBytes);
}

/** `ageMs`: since the end of a day. */
function tierAt(ageMs: Millis, tiers: Retention["tiers"]): Tier {
  let tier: Tier = "raw";
  for (let next: Tier | null = tier; next !== null && next !== "1d" && ageMs > tiers[next]; ) {
    next = nextTier(next);
    tier = next ?? tier;
  }
  return tier;
}

/** The oldest day of the finest tier; undefined if all are in the coarsest. */
function finest(database: RowDatabase, days: readonly Day[]): Day | undefined {
  return days
    .filter((day) => nextTier(database.tierOf(day)) !== null)
    .reduce<Day | undefined>(
      (best, day) =>
        best === undefined || isCoarser(database.tierOf(best), database.tierOf(day)) ? day : best,
      undefined,
    );
}

/** @returns false if rows of the day arrived meanwhile; the day is as before, and is rolled up another time. */
async function rollDay(
  database: RowDatabase,
  alone: Alone,
  day: Day,
  tier: Tier,
): Promise<boolean> {
  if (tier === MERGED_TIER) {
    await alone(() => endLateRows(database, day));
  }
  const before = await database.writtenTo(day);
  const later = database.days.filter((other) => other > day);
  await database.build(day, tier, async (run, from, to) => {
    const statements = rollStatements({
      from,
      to,
      day,
      bucketMs: TIER_MS[tier],
      isMerged: tier === MERGED_TIER,
      isRolled: database.tierOf(day) !== "raw",
      laterProfiles: database.union("profiles", later, { first: true }),
      laterMetrics: database.union("metrics", later.slice(0, 1), { first: true }),
    });
    for (const statement of statements) {
      await run(statement);
    }
  });
  return alone(async () => {
    if ((await database.writtenTo(day)) !== before) {
      await database.discard(day, tier);
      return false;
    }
    await database.replace(day, tier);
    return true;
  });
}

/**
 * Profiles that arrived late for days that were merged before hold until those of `day`, whose series end with the merger:
 * the time is written down while it is known.
 */
async function endLateRows(database: RowDatabase, day: Day): Promise<void> {
  for (const earlier of database.days.filter((other) => other < day).slice(-LONGEST_CARRY_DAYS)) {
    if (database.tierOf(earlier) === MERGED_TIER) {
      await database.endLateRows(earlier, day);
    }
  }
}
