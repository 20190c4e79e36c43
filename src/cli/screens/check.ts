/** What `tidemark check` prints: one line for a check that passed, five for each gate that failed. */
import { relative } from "node:path";
import { formatBytes, formatGrowth } from "../../model/base/numbers.js";
import { shellWord } from "../../model/base/shell_word.js";
import type { CheckJson, GateJson } from "../../model/documents/check_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { programName } from "../../model/profile/program_name.js";
import { padEnd, type Screen } from "../text/output.js";
import { functionOf, placeOf } from "./sites.js";

const LABEL_WIDTH = 10;

export function printCheck(screen: Screen, document: CheckJson): void {
  const { paint } = screen;
  for (const gate of document.gates) {
    if (gate.passed) {
      const mark = gate.decided ? paint.green(stateOf(gate)) : paint.yellow(stateOf(gate));
      const [first = "", ...rest] = screen.wrap(oneLine(`${titleOf(gate)}: ${gate.reason}`), 22);
      screen.line(`tidemark: ${mark} ${first}`);
      for (const line of rest) {
        screen.line(`${padEnd("", LABEL_WIDTH)}${line}`);
      }
    } else {
      for (const line of gateLines(document, gate)) {
        const [label = "", text = ""] = [line.slice(0, LABEL_WIDTH), line.slice(LABEL_WIDTH)];
        const [first = "", ...rest] = screen.wrap(text, LABEL_WIDTH);
        screen.line(`${paint.dim(label)}${label.startsWith("Gate") ? paint.red(first) : first}`);
        for (const more of rest) {
          screen.line(`${padEnd("", LABEL_WIDTH)}${more}`);
        }
      }
    }
  }
}

/** The five lines about a gate: "Gate      peak, at most 256 MiB: failed", ... */
export function gateLines(document: CheckJson, gate: GateJson): string[] {
  const line =
    gate.line === undefined
      ? "not known"
      : `${functionOf(gate.line.frame)} ${placeOf(gate.line.frame)} (${formatBytes(gate.line.bytes)})`;
  return [
    ["Gate", `${titleOf(gate)}: ${stateOf(gate)}`],
    ["Measured", gate.reason],
    ["Line", line],
    ["Holder", gate.holder ?? "not known"],
    ["Next", nextCommand(document, gate)],
  ].map(([label = "", text = ""]) => padEnd(label, LABEL_WIDTH) + oneLine(text));
}

function stateOf({ decided, passed }: GateJson): "passed" | "failed" | "not decided" {
  if (!decided) {
    return "not decided";
  }
  return passed ? "passed" : "failed";
}

/** "peak, at most 256 MiB". */
function titleOf({ gate, limit, unit }: GateJson): string {
  if (limit === null) {
    return gate;
  }
  return `${gate}, at most ${unit === "bytes" ? formatBytes(limit) : formatGrowth(limit)}`;
}

function nextCommand(document: CheckJson, { gate, decided }: GateJson): string {
  const { recording, target, suspects, durationMs } = document;
  if (!decided) {
    return "let the program run longer, or add --allow-undecided";
  }
  const path = recording ?? `${programName(target.command)}.tidemark`;
  const here = relative(process.cwd(), path);
  const file = shellWord(here === "" || here.startsWith("..") ? path : here);
  if (gate.endsWith("growth") && suspects.length === 0) {
    return `tidemark diff ${file}@${Math.round(durationMs / 3000)}s ${file}@end`;
  }
  return gate === "growth" || gate === "leak" || gate === "baseline-growth"
    ? `tidemark diagnose ${file}`
    : `tidemark summary ${file} --at peak`;
}

/** For the page of a workflow's run (GITHUB_STEP_SUMMARY). */
export function checkMarkdown(document: CheckJson): string {
  const { gates, passed, target } = document;
  const rows = gates.map((gate) => {
    const state = gate.passed ? stateOf(gate) : `**${stateOf(gate)}**`;
    return `| ${cell(titleOf(gate))} | ${state} | ${cell(gate.reason)} |`;
  });
  const failed = gates.filter((gate) => !gate.passed);
  return [
    `### Memory check ${passed ? "passed" : "failed"}: \`${cell(target.command.join(" ").slice(0, 200)).replaceAll("`", "'")}\``,
    "",
    "| gate | result | measured |",
    "|---|---|---|",
    ...rows,
    ...failed.flatMap((gate) => ["", "```", ...gateLines(document, gate).map(fenced), "```"]),
    "",
  ].join("\n");
}

function cell(text: string): string {
  return oneLine(text).replaceAll("|", "\\|").replaceAll("<", "&lt;");
}

/** A line that cannot end the block around it. */
function fenced(line: string): string {
  return line.replaceAll("```", "'''");
}
