/** The document of `tidemark diff`: the difference between two recordings or two moments of one. */
import type { Bytes } from "../../model/base/units.js";
import type {
  DiffJson,
  FrameJson,
  RowGroupJson,
  SummarySiteJson,
} from "../../model/documents/documents.js";
import { recurringFile } from "../../model/documents/own_code.js";
import type { SummaryJson } from "../../model/documents/summary_document.js";
import { baseName } from "../../model/profile/frame_text.js";
import {
  type ImportedFigure,
  isUnknown,
  type LineFigures,
  sharesDomains,
} from "../../model/profile/imported.js";
import { inCommonTerms } from "./rows/common_stacks.js";
import { addUp } from "./rows/site_groups.js";
import { type Figures, varianceBetween } from "./rows/variance_between.js";

/** One side of a comparison: a recording at a moment. */
interface DiffSide {
  /** Path of the recording. */
  readonly file: string;
  readonly summary: SummaryJson;
  /** At the peak. What had been allocated by then is not known: a summary at the peak has the total of the end. */
  readonly isPeak?: boolean;
  /** Figures by source line of an imported file that has some. */
  readonly lines?: readonly LineFigures[];
}

/** A difference within two standard errors of zero may be caused by sampling. */
export function isNoise(growthBytes: Bytes, standardErrorBytes: Bytes): boolean {
  return Math.abs(growthBytes) <= 2 * standardErrorBytes;
}

/** Differences beyond their error first, then by growth, largest first. */
export function bySignificance(
  x: { readonly growthBytes: Bytes; readonly isNoise?: boolean },
  y: { readonly growthBytes: Bytes; readonly isNoise?: boolean },
): number {
  return Number(x.isNoise === true) - Number(y.isNoise === true) || y.growthBytes - x.growthBytes;
}

/** Joins the sites of both sides by stack and domain. */
export function diffDocument(one: DiffSide, other: DiffSide): DiffJson {
  const figure = comparedFigure(one, other);
  const [a, b] = inTermsOfBoth(withFigure(one, figure), withFigure(other, figure));
  const sites = joinSites(a, b).sort(bySignificance);
  const total = addUp(sites, (site) => [site.growthBytes, site.standardErrorBytes]);
  return {
    schema: "tidemark.diff/1",
    a: sideOf(a),
    b: sideOf(b),
    ...(figure === "live" ? {} : { figure }),
    totals: {
      liveBytesA: liveBytes(a),
      liveBytesB: liveBytes(b),
      growthBytes: total.bytes,
      standardErrorBytes: total.standardErrorBytes,
      isNoise: isNoise(total.bytes, total.standardErrorBytes),
      peakRssBytesA: a.summary.rss.peakBytes,
      peakRssBytesB: b.summary.rss.peakBytes,
    },
    ...(b.summary.where === undefined ? {} : { where: b.summary.where }),
    ...(b.summary.by === undefined
      ? {}
      : { by: b.summary.by, groups: joinGroups(a, b).sort(bySignificance) }),
    sites,
    limits: [
      ...new Set([
        ...(figure === "unknown" ? [NOTHING_IN_COMMON] : []),
        ...otherPrograms(a, b),
        ...a.summary.limits,
        ...b.summary.limits,
      ]),
    ],
  };
}

/** Two moments of one recording already have the same terms. */
function inTermsOfBoth(a: DiffSide, b: DiffSide): readonly [DiffSide, DiffSide] {
  if (a.file === b.file) {
    return [a, b];
  }
  const [ofA, ofB] = inCommonTerms(a.summary.sites, b.summary.sites);
  return [
    { ...a, summary: { ...a.summary, sites: ofA } },
    { ...b, summary: { ...b.summary, sites: ofB } },
  ];
}

function sideOf({ file, summary }: DiffSide): DiffJson["a"] {
  const { atMs, target, imported } = summary;
  return { file, atMs, target, ...(imported === undefined ? {} : { imported }) };
}

type ComparedFigure = "live" | NonNullable<DiffJson["figure"]>;

const NOTHING_IN_COMMON =
  "No figure by stack or line is in both recordings: only RSS is compared, if both contain it.";

/** The first figure that both sides know. */
function comparedFigure(a: DiffSide, b: DiffSide): ComparedFigure {
  const figures: readonly (ComparedFigure & ImportedFigure)[] = ["live", "peak", "allocated"];
  const sources = [a.summary.imported, b.summary.imported];
  const found = figures.find((figure) => sources.every((source) => !isUnknown(source, figure)));
  return found ?? ([a, b].every(hasCopies) ? "copied" : "unknown");
}

function hasCopies({ lines = [] }: DiffSide): boolean {
  return lines.some(({ copiedBytes }) => copiedBytes !== null);
}

/** The side with that figure in the place of the live bytes. */
function withFigure(side: DiffSide, figure: ComparedFigure): DiffSide {
  if (figure === "live") {
    return side;
  }
  if (figure === "unknown") {
    return { ...side, summary: { ...side.summary, sites: [], groups: [] } };
  }
  if (figure === "copied") {
    const sites = (side.lines ?? []).map(copiedSite);
    return { ...side, summary: { ...side.summary, sites, groups: [] } };
  }
  const groups = side.summary.groups?.map((group) => ({
    ...group,
    liveBytes: figure === "peak" ? group.liveBytesAtPeak : group.allocatedBytes,
    standardErrorBytes: figure === "peak" ? 0 : group.standardErrorAllocatedBytes,
  }));
  const sites = side.summary.sites.map((site) => ({
    ...site,
    liveBytes: figure === "peak" ? site.liveBytesAtPeak : site.allocatedBytes,
    standardErrorBytes:
      figure === "peak" ? site.standardErrorAtPeakBytes : site.standardErrorAllocatedBytes,
  }));
  const summary = { ...side.summary, sites, ...(groups === undefined ? {} : { groups }) };
  return { ...side, summary };
}

const NO_FIGURES = {
  liveBytes: 0,
  liveObjects: 0,
  liveBytesAtPeak: 0,
  allocatedBytes: 0,
  allocatedObjects: 0,
  standardErrorBytes: 0,
  standardErrorAtPeakBytes: 0,
  standardErrorAllocatedBytes: 0,
};

/** A line as a stack of one frame. */
function copiedSite({ file, line, function: name, copiedBytes }: LineFigures): SummarySiteJson {
  return {
    ...NO_FIGURES,
    liveBytes: copiedBytes ?? 0,
    stack: [{ function: name, file, line, kind: "native" }],
    domain: "native",
  };
}

/** One sentence if the two sides are not of the same command. */
function otherPrograms(a: DiffSide, b: DiffSide): string[] {
  const [left, right] = [a, b].map(({ summary }) => summary.target.command.join(" "));
  // A file that was imported may not contain its command, or not the interpreter.
  const [ofA, ofB] = [a, b].map(({ summary }) => programOf(summary.target.command).join(" "));
  return ofA === ofB || ofA === "" || ofB === ""
    ? []
    : [
        `A and B ran different commands: ${left} and ${right}. Sites are matched only by their stacks.`,
      ];
}

const INTERPRETER = /^(?:.*\/)?python[\d.]*t?$/;

/** "app.py --fast": a command without its interpreter and without the program's folder. */
function programOf([first = "", ...words]: readonly string[]): readonly string[] {
  const [program = "", ...rest] =
    INTERPRETER.test(first) && words.length > 0 ? words : [first, ...words];
  return program === "" ? rest : [baseName(program), ...rest];
}

function joinSites(a: DiffSide, b: DiffSide): DiffJson["sites"] {
  const identity = identityOf(a, b);
  const [before, after] = [sitesById(a, identity), sitesById(b, identity)];
  return [...new Set([...before.keys(), ...after.keys()])].map((id) => {
    const [was = NO_SITE, is = NO_SITE] = [before.get(id), after.get(id)];
    const { stack, domain } = after.get(id) ?? was;
    return { stack, domain, ...changeOf(was, is, sharesSamples(a, b)) };
  });
}

type DiffGroup = NonNullable<DiffJson["groups"]>[number];

function joinGroups(a: DiffSide, b: DiffSide): DiffGroup[] {
  const ofOne = a.file === b.file;
  const [before, after] = [groupsById(a, ofOne), groupsById(b, ofOne)];
  return [...new Set([...before.keys(), ...after.keys()])].map((id) => {
    const [was, is] = [before.get(id), after.get(id)];
    const { group, pid } = (is ?? was) as GroupFigures;
    const change = changeOf(was ?? NOTHING, is ?? NOTHING, sharesSamples(a, b));
    return { group, ...(ofOne && pid !== undefined ? { pid } : {}), ...change };
  });
}

interface SiteFigures extends Figures, Pick<SummarySiteJson, "stack" | "domain"> {}
interface GroupFigures extends Figures, Pick<RowGroupJson, "group" | "pid"> {}

const NOTHING: Figures = { live: 0, variance: 0, allocated: 0, allocatedVariance: 0 };
const NO_SITE: SiteFigures = { ...NOTHING, stack: [], domain: "python" };

/** Whether the samples that are live on both sides are known: of two moments of one recording, except its peak. */
function sharesSamples(a: DiffSide, b: DiffSide): boolean {
  return a.file === b.file && a.isPeak !== true && b.isPeak !== true;
}

function changeOf(was: Figures, is: Figures, shareSamples: boolean) {
  const growthBytes = is.live - was.live;
  const variance = was.variance + is.variance;
  const standardErrorBytes = Math.sqrt(
    shareSamples ? Math.min(variance, varianceBetween(was, is)) : variance,
  );
  return {
    liveBytesA: was.live,
    liveBytesB: is.live,
    growthBytes,
    standardErrorBytes,
    isNoise: isNoise(growthBytes, standardErrorBytes),
  };
}

/** Processes of two recordings have different pids, so they are matched by command. */
function groupsById({ summary }: DiffSide, withPid: boolean): Map<string, GroupFigures> {
  const groups = new Map<string, GroupFigures>();
  for (const { group: named, pid, ...figures } of summary.groups ?? []) {
    const group = pid === undefined || withPid ? named : named.slice(`${pid} `.length);
    const sum = groups.get(group) ?? { ...NOTHING, group, ...(pid === undefined ? {} : { pid }) };
    addFigures(sum, figures);
    groups.set(group, sum);
  }
  return groups;
}

function addFigures(
  sum: Figures,
  figures: Pick<
    RowGroupJson,
    "liveBytes" | "standardErrorBytes" | "allocatedBytes" | "standardErrorAllocatedBytes"
  >,
): void {
  sum.live += figures.liveBytes;
  sum.variance += figures.standardErrorBytes ** 2;
  sum.allocated += figures.allocatedBytes;
  sum.allocatedVariance += figures.standardErrorAllocatedBytes ** 2;
}

/**
 * What both sides know of a site: a file may contain neither the allocator nor the names of Python functions, and tools
 * distinguish allocators differently. Names that one side does not know are left out of the comparison.
 */
interface Identity {
  readonly hasDomains: boolean;
  readonly hasFunctions: boolean;
}

function identityOf(a: DiffSide, b: DiffSide): Identity {
  return {
    hasDomains: sharesDomains(a.summary.imported, b.summary.imported),
    hasFunctions: [a, b].every(
      ({ summary: { sites, imported } }) =>
        imported === undefined ||
        sites.some(({ stack }) => stack.some((frame) => frame.function !== "")),
    ),
  };
}

/** Sites that differ only in their process, or in what one side does not know, are merged. */
function sitesById(
  { summary }: DiffSide,
  { hasDomains, hasFunctions }: Identity,
): Map<string, SiteFigures> {
  const sites = new Map<string, SiteFigures>();
  for (const site of summary.sites) {
    const { domain } = site;
    const stack = hasFunctions ? site.stack : site.stack.map(withoutPythonName);
    // The numbers of recurring code, such as notebook cells, differ between recordings.
    const named = stack.map((frame) => ({ ...frame, file: recurringFile(frame.file) }));
    const id = JSON.stringify(hasDomains ? [domain, named] : named);
    const sum = sites.get(id) ?? { ...NOTHING, stack, domain };
    addFigures(sum, site);
    sites.set(id, sum);
  }
  return sites;
}

function withoutPythonName(frame: FrameJson): FrameJson {
  return frame.kind === "python" ? { ...frame, function: "" } : frame;
}

function liveBytes({ summary }: DiffSide): number {
  return summary.sites.reduce((sum, site) => sum + site.liveBytes, 0);
}
