/** The rules over one file. */
import { FileFacts } from "./flow/file_facts.js";
import { Suppressions } from "./results/suppressions.js";
import { RULES } from "./rules/index.js";
import type { Fix, Report, Rule, Severity } from "./rules/rule.js";
import type { SyntaxNode, SyntaxTree } from "./syntax/tree.js";

/** A rule's finding, before it is converted to a document. Lines and columns count from 1. */
export interface Finding {
  readonly rule: Rule;
  readonly severity: Severity;
  readonly message: string;
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
  /** The function around it; memory that a recording measured anywhere in it counts for the finding. */
  readonly within: {
    readonly name: string;
    readonly line: number;
    readonly endLine: number;
  } | null;
  readonly text: string;
  readonly fix: Fix | null;
}

export interface CheckedSource {
  readonly findings: readonly Finding[];
  /** Number of findings that comments in the file suppress. */
  readonly suppressed: number;
}

/** Findings in the order of lines. */
export function checkSource(
  tree: SyntaxTree,
  path: string,
  isEnabled: (rule: Rule) => boolean,
  emptiedElsewhere: ReadonlySet<string>,
): CheckedSource {
  const facts = new FileFacts(tree, path, emptiedElsewhere);
  const suppressions = new Suppressions(tree.comments, (line) => tree.source.lineText(line));
  const findings: Finding[] = [];
  let suppressed = 0;
  for (const rule of RULES) {
    if (!isEnabled(rule)) {
      continue;
    }
    const seen = new Set<number>();
    for (const report of rule.check(facts)) {
      const finding = findingOf(rule, report, facts);
      if (seen.has(report.node.start)) {
        continue;
      }
      seen.add(report.node.start);
      const { line, endLine } = finding;
      if (suppressions.covers(rule.id, rule.name, line, endLine)) {
        suppressed++;
      } else {
        findings.push(finding);
      }
    }
  }
  const chosen = withoutRepetition(findings);
  return {
    findings: chosen.sort((a, b) => a.line - b.line || a.rule.id.localeCompare(b.rule.id)),
    suppressed,
  };
}

function findingOf(rule: Rule, report: Report, { module, tree }: FileFacts): Finding {
  const { node, message } = report;
  const { source } = tree;
  const scope = module.scopeOf(node).functionAround;
  const { line, endLine } = node;
  return {
    rule,
    severity: report.severity ?? rule.severity,
    message,
    line,
    column: node.start - source.startOfLine(line) + 1,
    endLine,
    endColumn: node.end - source.startOfLine(endLine) + 1,
    within: scope === null ? null : around(scope.node, scope.name),
    text: source.lineText(line).trim(),
    fix: report.fix ?? null,
  };
}

function around({ line, endLine }: SyntaxNode, name: string) {
  return { name: name === "" ? "<lambda>" : name, line, endLine };
}

/** Rules that explain more about a growing container than the fact that it grows. */
const OF_CONTAINERS = "L006 L012 L017 L019 L020 L021 L022 L024 L035 L039 L040";

/** One line is reported once for each thing that it leaks, by the most precise rule. */
const MORE_PRECISE = new Map(
  Object.entries({
    L001: OF_CONTAINERS,
    L002: OF_CONTAINERS,
    L003: OF_CONTAINERS,
    L004: "L017",
    L005: "L012 L022 L024",
  }).map(([rule, precise]) => [
    `TM-${rule}`,
    new Set(precise.split(" ").map((each) => `TM-${each}`)),
  ]),
);

function withoutRepetition(findings: readonly Finding[]): Finding[] {
  return findings.filter(
    ({ rule, line }) =>
      !findings.some(
        (other) => other.line === line && MORE_PRECISE.get(rule.id)?.has(other.rule.id) === true,
      ),
  );
}
