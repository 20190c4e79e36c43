/**
 * What programs of the leak bench did to their memory, from recordings:
 *
 *   leakbench/cases/NAME/case.py ─ tidemark run ─ DIR/NAME.tidemark ─ RSS and live bytes of each line over time
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { SetupError } from "../scripts/command.mjs";
import { readCases } from "../scripts/leakbench/cases.mjs";
import { root } from "../scripts/setup.mjs";

/** @typedef {import("./folder.mjs").Readings} Readings */
/** @typedef {import("./folder.mjs").Frame} Frame */
/** @typedef {import("./folder.mjs").Holder} Holder */
/**
 * @typedef {{name: string, isLeak: boolean, functions: string[], lengthMs: number, rss: Readings,
 *   sites: {stack: Frame[], live: Readings}[], holders: Holder[]}} Course times are ms since the start-up ended; RSS is what it
 *   rose by; holders are those that the diagnosis of the recording found
 */

/** Without packages, in one process; what leaks is memory of Python. */
const LEAKS = [
  ...["stats_dict", "mutable_default", "request_history", "callback_registry", "module_list"],
  ...["dict_of_growing_lists", "undo_history", "label_cardinality", "thread_locals"],
];
const LOOK_ALIKES = [
  ...["clean_lru_fills", "clean_noise", "clean_expiring_cache", "clean_bounded_deque"],
  ...["clean_load_rises_and_falls", "clean_pool_warmup", "clean_web_service"],
];
/** The part of a recording that counts, between start-up and exit. */
const PART = { from: 0.1, to: 0.95 };
const MOST_SITES = 12;
/** A leak that grew by less during its recording is lost in the noise of RSS once it is stretched. */
const LEAST_GROWN = 2 ** 20;

export const PROGRAMS = [...LEAKS, ...LOOK_ALIKES];

/** Records the programs that the folder lacks. @param {string} folder @param {(line: string) => void} say */
export function recordMissing(folder, say, programs = PROGRAMS) {
  if (existsSync(folder) && !statSync(folder).isDirectory()) {
    throw new SetupError(`${folder} is a file; --recordings needs a folder`);
  }
  mkdirSync(folder, { recursive: true });
  for (const { name, folder: of } of readCases(join(root, "leakbench/cases"), programs)) {
    const recording = join(folder, `${name}.tidemark`);
    if (!existsSync(recording)) {
      say(`recording ${name}`);
      const partial = join(folder, `${name}.partial`);
      const words = ["run", "-o", partial, "--quiet", "--", "python3", join(of, "case.py")];
      const { status } = spawnSync(join(root, "bin/tidemark"), words, { stdio: "ignore" });
      if (status !== 0) {
        throw new SetupError(`recording ${name} failed; try: bin/tidemark ${words.join(" ")}`);
      }
      renameSync(partial, recording);
    }
  }
}

/** @param {string} folder @returns {Promise<Course[]>} */
export async function readCourses(folder, programs = PROGRAMS) {
  const { openRecording } = await import("../dist/recording/reader.js");
  const { evidenceOf } = await import("../dist/inspect/recorded/evidence.js");
  const { diagnoseRecording } = await import("../dist/inspect/recorded/index.js");
  const { lineHolders } = await import("../dist/diagnose/index.js");
  const read = async (/** @type {string} */ path) => {
    const open = () => openRecording(path, () => false);
    const pause = () => Promise.resolve();
    const holders = lineHolders(await diagnoseRecording(open(), pause));
    return { ...(await evidenceOf(open(), pause, [])), holders };
  };
  /** @type {Course[]} */
  const courses = [];
  for (const { name, expect } of readCases(join(root, "leakbench/cases"), programs)) {
    const path = join(folder, `${name}.tidemark`);
    const { window, processes, sites, holders } = await read(path).catch(
      (/** @type {Error} */ error) => {
        throw new SetupError(`${path}: ${error.message}; delete it, so that it is recorded again`);
      },
    );
    const [program] = processes;
    const at = (/** @type {number} */ share) =>
      window.startMs + share * (window.endMs - window.startMs);
    const part = (/** @type {Iterable<number>} */ times, /** @type {Iterable<number>} */ values) =>
      between(at(PART.from), at(PART.to), [...times], [...values]);
    const rss = part(program?.series.timesMs ?? [], program?.series.values.get("rssBytes") ?? []);
    const kept = [...(sites?.sites ?? [])]
      .filter(({ own, keptStacks }) => own && keptStacks.length > 0)
      .sort((a, b) => Math.max(...b.liveBytes) - Math.max(...a.liveBytes))
      .slice(0, MOST_SITES);
    const named = kept.map(({ keptStacks, liveBytes }) => ({
      stack: (keptStacks[0]?.frames ?? []).map((frame) => renamed(frame, name)),
      // What leaked during start-up has no age in the part that counts.
      live: above(part(sites?.snapshotTimes ?? [], liveBytes), expect.negative ? 0 : 1),
    }));
    courses.push({
      ...{ name, isLeak: !expect.negative },
      functions: culprits(named, `/srv/service/${name}.py`, expect.culprit?.functions ?? []),
      lengthMs: rss.times.at(-1) ?? 0,
      rss: above(rss, 1),
      sites: named,
      holders: holders.map((one) => ({ ...one, line: renamed(one.line, name) })),
    });
  }
  const short = courses.find(({ isLeak, rss }) => isLeak && (rss.values.at(-1) ?? 0) < LEAST_GROWN);
  if (short !== undefined) {
    throw new SetupError(
      `${folder}/${short.name}.tidemark: the program did not grow; delete the file, so that it is recorded again`,
    );
  }
  return courses;
}

/** @param {number} fromMs @param {number} toMs @param {number[]} times @param {number[]} values @returns {Readings} */
function between(fromMs, toMs, times, values) {
  const known = times.flatMap((time, at) =>
    Number.isFinite(values[at]) ? [[time, values[at] ?? 0]] : [],
  );
  const all = {
    times: known.map(([time = 0]) => time),
    values: known.map(([, value = 0]) => value),
  };
  // Readings are seconds apart, which is hours once they are stretched.
  const first = valueAt(all, fromMs, false);
  const rows = [[fromMs, first], ...known.filter(([time = 0]) => time > fromMs && time <= toMs)];
  return {
    times: rows.map(([time = 0]) => time - fromMs),
    values: rows.map(([, value = 0]) => value),
  };
}

/** Without a share of the first value. @param {Readings} readings @param {number} share @returns {Readings} */
function above({ times, values }, share) {
  const first = share * (values[0] ?? 0);
  return { times, values: values.map((value) => value - first) };
}

/**
 * The labelled functions and those that they call, by the names that stacks give them: "Parser.tokens" and
 * "handle.<locals>.<listcomp>" for the labels tokens and handle.
 * @param {{stack: Frame[]}[]} sites @param {string} file @param {string[]} labelled
 */
function culprits(sites, file, labelled) {
  const isLabelled = (/** @type {Frame} */ { function: call }) =>
    call.split(".").some((part) => labelled.includes(part));
  const names = sites
    .flatMap(({ stack }) => stack.slice(0, 1 + stack.findLastIndex(isLabelled)))
    .filter((frame) => frame.file === file)
    .map(({ function: call }) => call);
  return [...new Set([...labelled, ...names])];
}

/** Each program is a module of the service. @param {Omit<Frame, "kind"> & {kind: string}} frame @param {string} name @returns {Frame} */
function renamed({ function: call, file, line, kind }, name) {
  const path = file.endsWith("case.py") ? `/srv/service/${name}.py` : file.replaceAll(" ", "");
  const isNative = kind === "native";
  return { function: call, file: path || "unknown", line, kind: isNative ? "native" : "python" };
}

/**
 * A value at a time of the recording; after its end, what leaked goes on, and the rest stays.
 * @param {Readings} readings @param {number} timeMs @param {boolean} goesOn
 */
export function valueAt({ times, values }, timeMs, goesOn) {
  const last = times.length - 1;
  if (last < 1 || timeMs <= (times[0] ?? 0)) {
    return values[0] ?? 0;
  }
  if (timeMs >= (times[last] ?? 0)) {
    const half = last >> 1;
    const slope =
      ((values[last] ?? 0) - (values[half] ?? 0)) / ((times[last] ?? 0) - (times[half] ?? 0));
    return (values[last] ?? 0) + (goesOn ? slope * (timeMs - (times[last] ?? 0)) : 0);
  }
  let [low, high] = [0, last];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    [low, high] = (times[middle] ?? 0) <= timeMs ? [middle, high] : [low, middle];
  }
  const share = (timeMs - (times[low] ?? 0)) / ((times[high] ?? 0) - (times[low] ?? 0) || 1);
  return (values[low] ?? 0) + share * ((values[high] ?? 0) - (values[low] ?? 0));
}
