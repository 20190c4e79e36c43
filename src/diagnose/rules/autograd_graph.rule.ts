import { formatShare, formatSlopeBriefly } from "../../model/base/numbers.js";
import type { KeptStack } from "../sites/site_history.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { type Rule, silent } from "./rule.js";

const MOST_OF_GROWTH = 0.4;
/** If results of this many operations of one pass are kept, a graph keeps them; a list would keep one. */
const FEWEST_OPERATIONS = 2;
const LEAST_SHARE = 0.04;
/** Share of the looked-up addresses that no Python object holds, in a program with tensors. */
const LEAST_IN_GRAPH = 0.3;

/**
 * Tensors are kept together with their autograd graph. One kept output keeps the results of all earlier
 * operations, so memory of several operations of one pass grows together.
 */
export const autogradGraph: Rule = {
  name: "autograd-graph",
  judge(observations) {
    const { suspects, evidence } = observations;
    if (!evidence.sites?.files.some((file) => /[/\\]torch[/\\]/.test(file))) {
      return null;
    }
    const all = suspects.reduce((sum, { slope }) => sum + slope, 0);
    const inGraph = (suspect: SiteJudgement) => {
      const holder = observations.holderOf(suspect);
      return holder && holder.looked > 0 ? holder.graph > LEAST_IN_GRAPH * holder.looked : null;
    };
    // A hook's results keep those of earlier layers, which another function created. If no holder was looked
    // up, one site with several operations is evidence for all sites of the passes.
    const several = suspects.some((site) => inGraph(site) === null && ofSeveralOperations(site));
    const tensors = suspects.filter((site) => inGraph(site) ?? (several && ofPasses(site)));
    const slope = tensors.reduce((sum, suspect) => sum + suspect.slope, 0);
    if (all === 0 || slope < MOST_OF_GROWTH * all) {
      return silent(
        suspects.some((suspect) => inGraph(suspect) === null)
          ? "No holder was looked up, so it is unknown whether the growing memory belongs to autograd graphs."
          : "No autograd graph accumulates.",
      );
    }
    return {
      says: "leak",
      kind: "graph-retention",
      weight: 0.93,
      detail: `${formatShare(slope / all)} of the memory that sites keep (${formatSlopeBriefly(slope)}) is the result of several operations of one forward or backward pass: a kept tensor keeps its autograd graph.`,
      suspects: tensors,
    };
  },
};

function passesOf({ site }: SiteJudgement): KeptStack[] {
  return site.domain === "python"
    ? []
    : site.keptStacks.filter(({ share }) => share >= LEAST_SHARE).filter(isOfPass);
}

function ofPasses(suspect: SiteJudgement): boolean {
  return passesOf(suspect).length > 0;
}

function ofSeveralOperations(suspect: SiteJudgement): boolean {
  const passes = passesOf(suspect);
  const operations = new Set(
    passes.map(({ frames }) => frames.map((frame) => `${frame.file}:${frame.line}`).join(" ")),
  );
  const backward = passes.some(({ frames }) =>
    frames.some(({ file }) => /[/\\]torch[/\\]autograd[/\\]/.test(file)),
  );
  return backward || operations.size >= FEWEST_OPERATIONS;
}

/** True for stacks through a module's forward or a backward pass, but not through a module's construction. */
function isOfPass({ frames }: KeptStack): boolean {
  const inTorch = frames.filter(({ file }) => /[/\\]torch[/\\]/.test(file));
  return (
    inTorch.some(
      ({ file, function: name }) =>
        /[/\\]torch[/\\](?:nn[/\\]modules|nn[/\\]functional|autograd|_tensor)/.test(file) &&
        /(?:forward|_call_impl|backward|apply|run_backward|^[a-z_]+$)/.test(
          name.split(".").at(-1) ?? "",
        ),
    ) &&
    !inTorch.some(({ function: name }) =>
      /__init__|reset_parameters|__deepcopy__|deepcopy|load/.test(name),
    )
  );
}
