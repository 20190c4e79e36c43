import { formatBytes, formatCount } from "../../model/base/numbers.js";
import type { LintFindingJson, LintJson } from "../../model/documents/lint_document.js";
import { oneLine } from "../../model/errors/errors.js";
import type { Screen } from "../text/output.js";

export interface LintShown {
  readonly leftOut: number;
  readonly unmatched: string | undefined;
  readonly fixed: number;
  readonly quiet: boolean;
}

/** Each finding with its line of source, then one line that counts them. */
export function printFindings(
  screen: Screen,
  document: LintJson,
  findings: readonly LintFindingJson[],
  { leftOut, unmatched, fixed, quiet }: LintShown,
): void {
  const { paint } = screen;
  for (const finding of findings) {
    const { file, line, column, rule, name, severity, message, text, measured } = finding;
    const colour = severity === "error" ? paint.red : paint.yellow;
    const figures =
      measured === undefined
        ? ""
        : `  ${paint.bold(formatBytes(measured.liveBytes))} live ${measured.where === "line" ? "from this line" : "from this function"}`;
    screen.line(
      `${paint.bold(`${oneLine(file)}:${line}:${column}`)} ${colour(severity)} ${rule} ${paint.dim(name)}${figures}`,
    );
    screen.line(`    ${oneLine(message)}`);
    screen.line(paint.dim(`    | ${screen.cutEnd(oneLine(text), 100)}`));
  }
  if (unmatched !== undefined) {
    screen.line(paint.dim(unmatched));
  }
  if (quiet) {
    return;
  }
  if (findings.length > 0) {
    screen.line();
  }
  if (leftOut > 0) {
    screen.line(paint.dim(`${formatCount(leftOut)} more: --top 0 shows all`));
  }
  screen.line(summaryOf(document, fixed));
}

/** "3 findings (2 errors, 1 warning) in 14 files, 2,310 lines; 1 fixed". */
function summaryOf(
  { findings, files, lines, suppressed, baselined }: LintJson,
  fixed: number,
): string {
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const warnings = findings.length - errors;
  const parts = [
    errors > 0 ? plural(errors, "error") : "",
    warnings > 0 ? plural(warnings, "warning") : "",
  ].filter((part) => part !== "");
  const fixable = findings.filter(({ fix }) => fix !== undefined).length;
  const rest = [
    fixed > 0 ? `${formatCount(fixed)} fixed` : "",
    fixable > 0 ? `${formatCount(fixable)} can be fixed with --fix` : "",
    suppressed > 0 ? `${formatCount(suppressed)} ignored by comments` : "",
    baselined > 0 ? `${formatCount(baselined)} in the baseline` : "",
  ].filter((part) => part !== "");
  const head =
    findings.length === 0
      ? "no findings"
      : `${plural(findings.length, "finding")} (${parts.join(", ")})`;
  return [`${head} in ${plural(files, "file")}, ${plural(lines, "line")}`, ...rest].join("; ");
}

/** Workflow commands of GitHub Actions, which become annotations of a pull request. */
export function printGithub(screen: Screen, findings: readonly LintFindingJson[]): void {
  for (const { file, line, endLine, column, rule, name, severity, message } of findings) {
    const properties = [
      `file=${escapeProperty(file)}`,
      `line=${line}`,
      `endLine=${endLine}`,
      `col=${column}`,
      `title=${escapeProperty(`${rule} ${name}`)}`,
    ].join(",");
    screen.line(`::${severity} ${properties}::${escapeData(message)}`);
  }
}

/** https://github.com/actions/toolkit: packages/core/src/command.ts */
function escapeData(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}

/** What `--rules` prints. */
export function printRules(
  screen: Screen,
  rules: readonly { id: string; name: string; severity: string; finds: string }[],
): void {
  const { paint } = screen;
  for (const { id, name, severity, finds } of rules) {
    screen.line(`${paint.bold(id)} ${paint.cyan(name)} ${paint.dim(severity)}`);
    screen.line(`    ${finds.replaceAll("`", "")}`);
  }
}

function plural(count: number, word: string): string {
  return `${formatCount(count)} ${word}${count === 1 ? "" : "s"}`;
}
