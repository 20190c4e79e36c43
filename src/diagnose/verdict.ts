/** Observations -> the rules' findings -> one verdict, with what it rests on. */
import type { DiagnosisJson, SuspectJson, VerdictKind } from "../model/diagnosis_document.js";
import { interval95 } from "../model/interval.js";
import { LEDGER_PARTS } from "../model/ledger.js";
import { ledgerMetric, type Metric } from "../model/series.js";
import { adviceFor } from "./advice.js";
import { deviceGrowth, deviceSuspects } from "./device_suspects.js";
import type { Evidence } from "./evidence.js";
import type { Growth } from "./growth.js";
import { headlineOf } from "./headline.js";
import { moreObjects } from "./more_objects.js";
import { handleSuspect, namedHolder } from "./named_holder.js";
import { type Observations, observe } from "./observations.js";
import { type Unranked, withPutter } from "./putters.js";
import type { Finding } from "./rule.js";
import { RULES } from "./rules/index.js";
import { bytesPerStep } from "./steps.js";
import { deviceSummary, insufficientSummary, summaryOf } from "./summary_sentence.js";
import { agesOf, type SiteJudgement } from "./suspects.js";

const MS_PER_HOUR = 3_600_000;
const MOST_SUSPECTS = 10;
/** What grows in code that is nobody's of the program counts so much: a library's work on the program's own
 * behalf, or a thread's stack, is seldom the cause while the program's own code grows, too. */
const LIBRARY_WEIGHT = 0.1;
/** Of all suspects' growth: less is not worth a reader's time. */
const LEAST_SHARE = 0.03;

interface Judged {
  readonly rule: string;
  readonly finding: Finding;
}

/** Never throws: evidence that says nothing gives "insufficient-evidence". */
export function diagnose(evidence: Evidence): DiagnosisJson {
  const observations = observe(evidence);
  const findings: Judged[] = RULES.flatMap(({ name, judge }) => {
    const finding = judge(observations);
    return finding === null ? [] : [{ rule: name, finding }];
  });
  const decisive = decide(findings);
  const kind = decisive?.kind ?? "insufficient-evidence";
  const blamed = decisive?.says === "leak" ? accusedBy(decisive, kind, observations) : NOBODY;
  const { accused } = blamed;
  const suspects =
    decisive?.deviceSites === undefined
      ? suspectsOf(observations, blamed, kind)
      : deviceSuspects(evidence.target.pid, decisive);
  const growth = growthOf(observations, decisive, accused);
  const census = moreObjects(evidence.census);
  return {
    schema: "tidemark.diagnosis/1",
    target: evidence.target,
    window: {
      startMs: evidence.window.startMs,
      endMs: evidence.window.endMs,
      points: observations.target.process.series.timesMs.length,
    },
    verdict: {
      kind,
      confidence: confidenceOf(decisive, findings),
      summary:
        decisive?.about === "device"
          ? deviceSummary(kind, decisive.detail)
          : kind === "insufficient-evidence" && decisive
            ? insufficientSummary(decisive.detail)
            : summaryOf(kind, observations, growth, accused, suspects),
    },
    growth,
    ledger: partsOf(observations),
    suspects,
    evidence: findings.map(({ rule, finding }) => ({
      rule,
      says: finding.says,
      detail: finding.detail,
    })),
    ...(census === null ? {} : { census }),
    advice: [
      ...(suspects.length > 0 ? [] : (decisive?.advice ?? adviceFor(kind, null, ""))),
      ...findings.flatMap(({ finding }) => finding.beside ?? []),
    ],
    limits: [...evidence.limits, ...missing(evidence)],
  };
}

/** The heaviest; of equals the first in the list of rules. */
function decide(findings: readonly Judged[]): Finding | null {
  return findings.reduce<Finding | null>(
    (best, { finding }) =>
      finding.kind !== null && finding.weight > (best?.weight ?? 0) ? finding : best,
    null,
  );
}

/** The rule's own weight, less where others speak against it. */
function confidenceOf(decisive: Finding | null, findings: readonly Judged[]): number {
  if (!decisive) {
    return 0;
  }
  const against = findings.filter(
    ({ finding }) =>
      finding.says !== "silent" && finding.says !== decisive.says && finding.weight >= 0.5,
  );
  return Math.round(Math.max(0.1, decisive.weight - 0.08 * against.length) * 100) / 100;
}

interface Accused {
  readonly accused: readonly SiteJudgement[];
  /** Of shared pages: who reads what the accused had made. */
  readonly readers: readonly SiteJudgement[];
  /** Of handles: sites that keep what belongs to each of them. */
  readonly beside: readonly SiteJudgement[];
}

const NOBODY: Accused = { accused: [], readers: [], beside: [] };

/** The rule's sites; where it has none, what the program's objects tell. Where handles leak, who makes them: sites
 * that grow beside them may be what the program keeps of each. */
function accusedBy(
  { suspects = [], readers = [], growth }: Finding,
  kind: VerdictKind,
  observations: Observations,
): Accused {
  const { slope } = growth ?? observations.target.growth("rssBytes");
  const handles = handleSuspect(observations, kind, slope);
  const makes = kind === "handle-leak" && (handles?.site.keptStacks.length ?? 0) > 0;
  if (handles !== null && (makes || suspects.length === 0)) {
    const keep = suspects.filter(({ site, course }) => site.own && course === "keeps");
    return { accused: [handles], readers: [], beside: chooseSuspects(keep) };
  }
  return { accused: chooseSuspects(withOwn(observations, suspects)), readers, beside: [] };
}

/** Where a library alone is accused (its own task made most of what a program keeps): what the program's code
 * keeps in the same place, too, in however few samples. */
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

/** Who reads stands behind the first of those who made what is read: both ends of it are where it can be mended. */
function suspectsOf(
  observations: Observations,
  { accused, readers, beside }: Accused,
  kind: VerdictKind,
): SuspectJson[] {
  const made = withPutter(
    accused.map((suspect) => suspectJson(observations, suspect, accused, kind)),
    kind,
    accused[0] !== undefined && callsPutter(observations, accused[0], kind),
  );
  const unadvised = (suspect: SiteJudgement, all: readonly SiteJudgement[]) => ({
    ...suspectJson(observations, suspect, all, kind),
    advice: [], // it goes with what is read, or with the handle
  });
  const read = readers.map((suspect) => ({ ...unadvised(suspect, readers), reads: true as const }));
  const kept = beside.map((suspect) => unadvised(suspect, accused));
  return [...made.slice(0, 1), ...read, ...made.slice(1), ...kept].map((suspect, at) => ({
    ...suspect,
    rank: at + 1,
  }));
}

/** Whether the function that a suspect counts for names who puts things into its holder. */
function callsPutter(
  observations: Observations,
  suspect: SiteJudgement,
  kind: VerdictKind,
): boolean {
  const holder = namedHolder(observations, suspect, kind);
  const found = observations.evidence.holders?.find((one) => one.holder === holder);
  const maker = headlineOf(suspect.site)?.function;
  return holder !== null && maker !== undefined && (found?.callers.includes(maker) ?? false);
}

function suspectJson(
  observations: Observations,
  suspect: SiteJudgement,
  accused: readonly SiteJudgement[],
  kind: VerdictKind,
): Unranked {
  const { evidence } = observations;
  const { site } = suspect;
  const sampled = site.liveBytes.length > 0;
  const histories = site.domain === "files" ? evidence.mappings : evidence.sites;
  const times = histories?.lookTimes ?? evidence.census?.timesMs ?? [];
  const holder = namedHolder(observations, suspect, kind);
  const all = accused.reduce((sum, { slope }) => sum + slope, 0);
  const code = site.keptStacks.flatMap(({ frames }) => frames.map((f) => f.function)).join(" ");
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
      ? times.map((timeMs, look) => ({ timeMs, bytes: Math.round(site.liveBytes[look] ?? 0) }))
      : [],
    ...(site.type === undefined ? {} : { type: site.type }),
    ...(holder ? { holder } : {}),
    advice: adviceFor(kind, holder, code),
  };
}

/** Of what the verdict is about: its suspects, else the part it names, else RSS. */
function growthOf(
  { evidence, target }: Observations,
  decisive: Finding | null,
  accused: readonly SiteJudgement[],
): DiagnosisJson["growth"] {
  if (decisive?.deviceSites !== undefined) {
    return deviceGrowth(decisive.deviceSites);
  }
  const rss = target.growth("rssBytes");
  const counted: Pick<Growth, "slope" | "low" | "high"> =
    decisive?.growth ?? (accused.length > 0 ? sumOf(accused) : rss);
  const limits = target.readings("cgroupLimitBytes").values;
  const usage = target.readings("cgroupUsageBytes").values;
  const limitBytes = limits.at(-1) ?? 0;
  const left = limitBytes - (usage.at(-1) ?? rss.level);
  const leaks = decisive?.says === "leak" && counted.slope > 0;
  const perStep = bytesPerStep(evidence, counted.slope);
  return {
    bytesPerHour: Math.round(counted.slope * MS_PER_HOUR),
    low: Math.round(counted.low * MS_PER_HOUR),
    high: Math.round(counted.high * MS_PER_HOUR),
    limitBytes,
    msToLimit: leaks && limitBytes > 0 ? Math.max(0, Math.round(left / counted.slope)) : 0,
    ...(perStep === null ? {} : { bytesPerStep: perStep }),
  };
}

/** Sampling alone gives each site's error; sites are independent. A slope is what was kept by the time it
 * took, so it has the interval of a sum of samples. */
function sumOf(accused: readonly SiteJudgement[]): { slope: number; low: number; high: number } {
  const slope = accused.reduce((sum, suspect) => sum + suspect.slope, 0);
  const variance = accused.reduce((sum, { site, slope: own, keptBytes }) => {
    const live = site.liveBytes.at(-1) ?? 0;
    // The error of what was kept: the samples' share of it.
    const error =
      live > 0 && keptBytes > 0 ? site.standardErrorBytes * Math.sqrt(keptBytes / live) : 0;
    return sum + (keptBytes > 0 ? ((error / keptBytes) * own) ** 2 : 0);
  }, 0);
  return { slope, ...interval95(slope, Math.sqrt(variance)) };
}

const KERNEL_PARTS: readonly (readonly [Metric, string])[] = [
  ["anonRssBytes", "anonymous"],
  ["fileRssBytes", "file.mapped"],
  ["shmemRssBytes", "shm"],
];

function partsOf({ target }: Observations): DiagnosisJson["ledger"] {
  const rows = (parts: readonly (readonly [Metric, string])[]) =>
    parts.flatMap(([metric, part]) => {
      const bytes = target.readings(metric).values.at(-1);
      const growthBytesPerHour = Math.round(target.growth(metric).slope * MS_PER_HOUR);
      return bytes === undefined ? [] : [{ part, bytes: Math.round(bytes), growthBytesPerHour }];
    });
  const ledger = rows(LEDGER_PARTS.map((part) => [ledgerMetric(part), part]));
  const kernel = rows(KERNEL_PARTS);
  const told = LEDGER_PARTS.some((part) => target.growth(ledgerMetric(part)).shape !== "short");
  return ledger.length > 0 && (told || kernel.length === 0) ? ledger : kernel;
}

/** What the verdict had to do without. */
function missing(evidence: Evidence): string[] {
  if (evidence.snapshots && evidence.processes.every(({ series }) => series.timesMs.length === 0)) {
    return []; // a snapshot alone: the host's memory is not what it is about
  }
  const sentences: string[] = [];
  if (!evidence.sites) {
    sentences.push("No agent ran: no site of an allocation is known.");
  }
  if (!evidence.holders || evidence.holders.length === 0) {
    sentences.push("Holders were not looked up: which object keeps the memory is not known.");
  }
  if (!evidence.processes[0]?.series.values.has("ledger.malloc.used")) {
    sentences.push(
      "No ledger was taken: of RSS only private, file and shared pages are told apart.",
    );
  }
  return sentences;
}
