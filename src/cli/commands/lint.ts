import { writeFileSync } from "node:fs";
import { Command, Option } from "commander";
import { type LintQuestion, lintBaseline, lintDocument, lintRules } from "../../inspect/index.js";
import type { LintFindingJson, LintJson } from "../../model/documents/lint_document.js";
import { badUsage, fileUnusable } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { openRecordingAt } from "../files/recordings.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  parseCount,
  selectRows,
  withCommonOptions,
  withExamples,
} from "../options/options.js";
import { printFindings, printGithub, printRules } from "../screens/lint.js";
import { sarifOf } from "../screens/lint_sarif.js";
import { printJson, printNote, screenOf } from "../text/output.js";

interface LintOptions extends CommonOptions {
  readonly select?: readonly string[];
  readonly ignore?: readonly string[];
  readonly exclude?: readonly string[];
  readonly failOn?: string;
  readonly fix?: boolean;
  readonly baseline?: string;
  readonly saveBaseline?: string;
  readonly format: "text" | "json" | "sarif" | "github";
  readonly recording?: string;
  readonly rules?: boolean;
  readonly top?: number;
  readonly filter?: string;
}

export const about: CommandAbout = {
  group: "source",
  summary: "find leak patterns in Python source",
  rows: "without size",
};

export function buildCommand(): Command {
  const command = new Command("lint")
    .description(
      "Find leak patterns in Python source: containers that only grow, caches that keep instances,\n" +
        "tensors that keep their graph, clients made for each request. docs/lint_rules.md explains each rule.",
    )
    .argument("[paths...]", "Python files, or folders that contain them", ["."])
    .option("--select <rules>", "only these rules: ids, prefixes of ids, or names", words)
    .option("--ignore <rules>", "not these rules", words)
    .option("--exclude <patterns>", "leave out these paths, as in .gitignore", words)
    .addOption(
      new Option(
        "--fail-on <severity>",
        "exit code 1 for findings of at least this severity (default: warning)",
      ).choices(["error", "warning", "never"]),
    )
    .option("--fix", "change the source where that is safe")
    .option("--baseline <file>", "leave out the findings that this file accepts")
    .option("--save-baseline <file>", "accept today's findings: write them to this file")
    .addOption(
      new Option("--format <format>", "output format")
        .choices(["text", "json", "sarif", "github"])
        .default("text"),
    )
    .option(
      "--recording <recording>",
      "rank findings by the memory that this recording measured at their lines",
    )
    .option("--rules", "list the rules")
    .option("--top <n>", "at most this many findings (default: all)", parseCount)
    .option("--filter <text>", "only findings that contain this text");
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark lint src",
    "tidemark lint src --select TM-L001,cached-method --fail-on error",
    "tidemark lint src --save-baseline lint-baseline.txt",
    "tidemark lint src --recording app.tidemark --top 10",
    "tidemark lint . --format sarif > lint.sarif",
  ).action(lint);
}

async function lint(paths: readonly string[], options: LintOptions): Promise<void> {
  const screen = screenOf(process.stdout);
  if (options.rules === true) {
    const rules = lintRules();
    return options.json === true ? printJson({ rules }) : printRules(screen, rules);
  }
  if (options.json === true && !["text", "json"].includes(options.format)) {
    throw badUsage(`--json and --format ${options.format} cannot be combined`, "choose one");
  }
  const { document, fixed, isIncomplete, failOn } = await lintDocument(questionOf(paths, options));
  const limit = options.failOn ?? failOn ?? "warning";
  if (!["error", "warning", "never"].includes(limit)) {
    throw badUsage(
      `fail-on = "${limit}" in pyproject.toml is invalid`,
      "use error, warning or never",
    );
  }
  const chosen = selectRows(document.findings, options, 0, () => 0, textOf);
  if (options.quiet !== true) {
    for (const { file, line, message } of document.errors) {
      printNote(`${file}${line === 0 ? "" : `:${line}`} ${message}`);
    }
  }
  if (options.saveBaseline !== undefined) {
    saveBaseline(options.saveBaseline, document);
    process.exitCode = isIncomplete ? 2 : 0;
    return;
  }
  const shown: LintJson = { ...document, findings: chosen.rows };
  if (options.json === true || options.format === "json") {
    printJson(shown);
  } else if (options.format === "sarif") {
    printJson(sarifOf(shown, lintRules()));
  } else if (options.format === "github") {
    printGithub(screen, chosen.rows);
  } else {
    const { leftOut, unmatched } = chosen;
    printFindings(screen, document, chosen.rows, {
      leftOut,
      unmatched,
      fixed,
      quiet: options.quiet === true,
    });
  }
  const isFailure = document.findings.some(
    ({ severity }) => limit !== "never" && (limit === "warning" || severity === "error"),
  );
  process.exitCode = isIncomplete ? 2 : isFailure ? 1 : 0;
}

function questionOf(paths: readonly string[], options: LintOptions): LintQuestion {
  const { select, ignore, exclude, fix, baseline, recording, saveBaseline } = options;
  return {
    paths,
    ...(select === undefined ? {} : { select }),
    ...(ignore === undefined ? {} : { ignore }),
    ...(exclude === undefined ? {} : { exclude }),
    ...(fix === undefined ? {} : { fix }),
    // A new baseline holds what the old one accepts, too.
    ...(saveBaseline === undefined
      ? baseline === undefined
        ? {}
        : { baseline }
      : { acceptsAll: true }),
    ...(recording === undefined ? {} : { recording: openRecordingAt(recording) }),
  };
}

function saveBaseline(path: string, document: LintJson): void {
  try {
    writeFileSync(path, lintBaseline(document, path));
  } catch (error) {
    throw fileUnusable(path, "write", reasonOf(error).message);
  }
  printNote(`${path} accepts ${document.findings.length} findings: check with --baseline ${path}`);
}

function textOf({ file, line, rule, name, message }: LintFindingJson): string {
  return `${file}:${line} ${rule} ${name} ${message}`;
}

/** "a,b" given once or more. */
function words(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(",").map((word) => word.trim())].filter((word) => word !== "");
}
