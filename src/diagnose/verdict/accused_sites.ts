/** The sites that a verdict accuses, as suspects in its document. */
import type {
  HolderJson,
  SuspectJson,
  VerdictKind,
} from "../../model/documents/diagnosis_document.js";
import type { FrameJson } from "../../model/documents/documents.js";
import { baseName } from "../../model/profile/frame_text.js";
import { entriesGrow, haveContainersGrown, objectsOfEntry } from "../causes/growing_containers.js";
import { growingHandles } from "../causes/growing_handles.js";
import { handleSuspect, namedHolder } from "../causes/named_holder.js";
import { type Unranked, withPutter } from "../causes/putters.js";
import type { Observations } from "../evidence/observations.js";
import type { Finding } from "../rules/rule.js";
import { isFirm } from "../series/growth.js";
import { growthShown } from "../series/total_growth.js";
import type { Backlog } from "../sites/accumulation.js";
import { headlineOf } from "../sites/headline_frame.js";
import { agesOf, keeps, type SiteJudgement } from "../sites/suspects.js";
import { adviceFor, adviceForBacklog } from "../wording/advice.js";
import type { AdviceFacts } from "../wording/advice_entry.js";
import { isBehindOneObject } from "../wording/holder_name.js";

const MS_PER_HOUR = 3_600_000;
const MOST_SUSPECTS = 10;
/**
 * Weight of growth outside the program's own code. While the program's own code also grows, a library's
 * internal work or a thread's stack is rarely the cause.
 */
const LIBRARY_WEIGHT = 0.1;
/** Share of all suspects' growth; smaller suspects are not listed. */
const LEAST_SHARE = 0.03;

interface Accused {
  readonly accused: readonly SiteJudgement[];
  /** For shared pages: the sites that read the suspects' objects. */
  readonly readers: readonly SiteJudgement[];
  /** For handles: sites that keep memory belonging to each of them. */
  readonly beside: readonly SiteJudgement[];
}

export const NOBODY: Accused = { accused: [], readers: [], beside: [] };

/**
 * The rule's sites; if it has none, sites derived from the program's objects. If handles leak, the site that
 * creates them, because other growing sites may be memory that the program keeps for each handle.
 */
export function accusedBy(
  { suspects = [], readers = [], growth, explainedSlope }: Finding,
  kind: VerdictKind,
  observations: Observations,
): Accused {
  const { total } = observations;
  const found = explainedSlope ?? (growth ?? total).slope;
  const slope = isFirm(total) ? Math.min(found, total.slope) : found;
  const handles = handleSuspect(observations, kind, slope);
  const makes = kind === "handle-leak" && (handles?.site.keptStacks.length ?? 0) > 0;
  if (handles !== null && (makes || suspects.length === 0)) {
    const keep = suspects.filter(({ site, course }) => site.own && keeps(course));
    return { accused: [handles], readers: [], beside: chooseSuspects(keep) };
  }
  return { accused: chooseSuspects(withOwn(observations, suspects)), readers, beside: [] };
}

/**
 * If only a library is accused (its own task created most of what the program keeps), adds what the program's
 * code keeps in the same place, in however few samples.
 */
function withOwn(
  { sites, holderOf }: Observations,
  suspects: readonly SiteJudgement[],
): readonly SiteJudgement[] {
  if (suspects.some(({ site }) => site.own)) {
    return suspects;
  }
  const placeOf = (suspect: SiteJudgement) => holderOf(suspect)?.holder?.path.join("\n");
  const places = new Set(suspects.map(placeOf));
  places.delete(undefined);
  const own = sites.filter(
    (judgement) =>
      judgement.site.own &&
      judgement.slope > 0 &&
      judgement.course !== "churns" &&
      places.has(placeOf(judgement)),
  );
  return [...suspects, ...own];
}

function chooseSuspects(accused: readonly SiteJudgement[]): SiteJudgement[] {
  const all = accused.reduce((sum, { slope }) => sum + slope, 0);
  const weight = ({ site, slope }: SiteJudgement) => slope * (site.own ? 1 : LIBRARY_WEIGHT);
  return [...accused]
    .sort((a, b) => weight(b) - weight(a))
    .filter(({ slope }) => slope > LEAST_SHARE * all)
    .slice(0, MOST_SUSPECTS);
}

/** A site that reads shared pages comes after the site that created them; either of the two can be fixed. */
export function suspectsOf(
  observations: Observations,
  { accused, readers, beside }: Accused,
  kind: VerdictKind,
): SuspectJson[] {
  const made = withPutter(
    acrossProcesses(
      accused.map((suspect) => ({
        place: `${suspect.site.domain} ${suspect.site.place}`,
        json: suspectJson(observations, suspect, accused, kind),
      })),
    ),
    kind,
    accused[0] !== undefined && callsPutter(observations, accused[0], kind),
  );
  const unadvised = (suspect: SiteJudgement, all: readonly SiteJudgement[]) => ({
    ...suspectJson(observations, suspect, all, kind),
    advice: [], // the site that created the pages or the handle has the advice
  });
  const read = readers.map((suspect) => ({ ...unadvised(suspect, readers), reads: true as const }));
  const kept = beside.map((suspect) => ({ ...unadvised(suspect, accused), partOf: 1 }));
  return [...made.slice(0, 1), ...read, ...made.slice(1), ...kept].map((suspect, at) => ({
    ...suspect,
    rank: at + 1,
  }));
}

/**
 * One suspect per place, because the workers of a server run the same code. Its figures are sums; other data is
 * from the process in which it grows most, and the holder from any process in which it is known.
 */
function acrossProcesses(
  rows: readonly { readonly place: string; readonly json: Unranked }[],
): Unranked[] {
  const byPlace = new Map<string, Unranked[]>();
  for (const { place, json } of rows) {
    byPlace.set(place, [...(byPlace.get(place) ?? []), json]);
  }
  return [...byPlace.values()].flatMap((same) => {
    const [first] = same;
    const pids = new Set(same.map(({ pid }) => pid));
    if (first === undefined || pids.size === 1) {
      return same;
    }
    const sum = (of: (suspect: Unranked) => number) =>
      same.reduce((total, suspect) => total + of(suspect), 0);
    const holder = same.find((suspect) => suspect.holder)?.holder;
    return [
      {
        ...first,
        share: Math.min(
          1,
          sum(({ share }) => share),
        ),
        liveBytes: sum(({ liveBytes }) => liveBytes),
        growthBytesPerHour: sum(({ growthBytesPerHour }) => growthBytesPerHour),
        ages: first.ages.map(({ olderThanMs }, i) => ({
          olderThanMs,
          bytes: sum(({ ages }) => ages[i]?.bytes ?? 0),
        })),
        history: first.history.map(({ timeMs }, i) => ({
          timeMs,
          bytes: sum(({ history }) => history[i]?.bytes ?? 0),
        })),
        ...(holder ? { holder } : {}),
        processes: same.map(({ pid, growthBytesPerHour }) => ({ pid, growthBytesPerHour })),
      },
    ];
  });
}

/** Whether the suspect's function is the one that adds items to its holder. */
function callsPutter(
  observations: Observations,
  suspect: SiteJudgement,
  kind: VerdictKind,
): boolean {
  const holder = namedHolder(observations, suspect.site, kind);
  const found = observations.evidence.holders?.find((one) => one.holder === holder);
  const maker = headlineOf(suspect.site)?.function;
  return holder !== null && maker !== undefined && (found?.callers.includes(maker) ?? false);
}

/** Programs that do not store exceptions have only a few tracebacks. */
const MANY_TRACEBACKS = 50;

/** What advice depends on. `accused`: all suspects of the verdict. */
function factsOf(
  observations: Observations,
  { site }: SiteJudgement,
  accused: readonly SiteJudgement[],
  holder: HolderJson | null,
): AdviceFacts {
  const { census } = observations.evidence;
  const types = site.pid === census?.pid ? census.types : [];
  const tracebacks = types.find(({ type }) => type === "traceback")?.objects.at(-1) ?? 0;
  const stacks = site.keptStacks.flatMap(({ frames }) => frames);
  const leaves = accused.flatMap((one) => one.site.keptStacks.flatMap((s) => s.frames[0] ?? []));
  const handles = growingHandles(observations)?.name;
  return {
    holder,
    code: [...stacks.map(codeText), ...programNames(observations)].join(" "),
    made: leaves.map(codeText).join(" "),
    holdsTracebacks: tracebacks >= MANY_TRACEBACKS,
    added: new Map(
      types.map(({ type, objects }) => [type, (objects.at(-1) ?? 0) - (objects[0] ?? 0)]),
    ),
    isOfOneObject: isBehindOneObject(holder, {
      domain: site.domain,
      liveBytes: site.liveBytes.at(-1) ?? 0,
    }),
    ...(entriesGrow(observations, site) === false
      ? {}
      : { objectsOfEntry: objectsOfEntry(observations, site, holder) }),
    containersGrow: holder !== null && haveContainersGrown(observations, site, holder),
    ...(handles === undefined ? {} : { handles }),
  };
}

/** The program and its module, as in `gunicorn` and `python -m celery`: the stacks of a pool of threads do not name their server. */
function programNames({ evidence: { target } }: Observations): string[] {
  return target.command.slice(0, PROGRAM_WORDS).map(baseName);
}

const PROGRAM_WORDS = 3;

const codeText = (frame: FrameJson): string => `${frame.function} ${frame.file}`;

function backlogJson({
  waitingMs,
  producedSlope,
  consumedSlope,
}: Backlog): NonNullable<SuspectJson["backlog"]> {
  return {
    waitingMs: Math.round(waitingMs),
    producedBytesPerHour: Math.round(producedSlope * MS_PER_HOUR),
    consumedBytesPerHour: Math.round(consumedSlope * MS_PER_HOUR),
  };
}

function suspectJson(
  observations: Observations,
  suspect: SiteJudgement,
  accused: readonly SiteJudgement[],
  kind: VerdictKind,
): Unranked {
  const { evidence, total } = observations;
  const { site } = suspect;
  const sampled = site.liveBytes.length > 0;
  const histories = site.domain === "files" ? evidence.mappings : evidence.sites;
  const times = histories?.snapshotTimes ?? evidence.census?.timesMs ?? [];
  const holder = namedHolder(observations, site, kind);
  const kept = accused.reduce((sum, { slope }) => sum + slope, 0);
  const isOfGrowth = kind !== "copy-on-write" && site.domain !== "files";
  const all = isOfGrowth ? growthShown(total, kept) : kept;
  const inChildren = (suspect.turnsPrivateIn ?? []).map(({ pid, slope }) => ({
    pid,
    growthBytesPerHour: Math.round(slope * MS_PER_HOUR),
  }));
  const facts = factsOf(observations, suspect, accused, holder);
  return {
    share: all > 0 ? Math.min(1, suspect.slope / all) : 0,
    liveBytes: Math.round(site.liveBytes.at(-1) ?? 0),
    growthBytesPerHour: Math.round(suspect.slope * MS_PER_HOUR),
    stack: [...(site.keptStacks[0]?.frames ?? [])],
    domain: site.domain,
    pid: site.pid,
    ages:
      histories && (site.liveBytes.at(-1) ?? 0) > 0
        ? agesOf(site, histories, evidence.window.startMs)
        : [],
    history: sampled
      ? times.map((timeMs, snapshot) => ({
          timeMs,
          bytes: Math.round(site.liveBytes[snapshot] ?? 0),
        }))
      : [],
    ...(site.type === undefined ? {} : { type: site.type }),
    ...(holder ? { holder } : {}),
    ...(suspect.backlog === undefined ? {} : { backlog: backlogJson(suspect.backlog) }),
    ...(inChildren.length > 1 ? { processes: inChildren } : {}),
    advice:
      kind === "insufficient-evidence"
        ? [] // advice to collect more evidence is given once, not per suspect
        : suspect.backlog
          ? adviceForBacklog(facts)
          : adviceFor(kind, facts),
  };
}
