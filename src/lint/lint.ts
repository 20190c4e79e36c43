/** `tidemark lint`: the rules over all files of a command line. */
import type { LintFindingJson, LintJson } from "../model/documents/lint_document.js";
import { badUsage } from "../model/errors/errors.js";
import { checkSource, type Finding } from "./check_source.js";
import { isMatched } from "./files/globs.js";
import { readSource, writeSource } from "./files/read_source.js";
import { moduleNameOf, removalsIn } from "./files/removals.js";
import type { LintSettings } from "./files/settings.js";
import { findSourceFiles, type SourceFile } from "./files/source_files.js";
import { type ParsePython, pythonParser } from "./grammar.js";
import { applyFixes } from "./results/apply_fixes.js";
import type { Rule } from "./rules/rule.js";
import { chosenRules, rulesNamed } from "./rules/selection.js";
import type { SourceText } from "./syntax/tree.js";

export interface LintRequest extends Omit<LintSettings, "exclude"> {
  readonly paths: readonly string[];
  /** Patterns of the command line, relative to the working folder; files that are named there are still checked. */
  readonly exclude?: readonly string[];
  /** Patterns of the settings. */
  readonly settingsExclude?: LintSettings["exclude"];
  /** Change the files if a fix is safe. */
  readonly fix?: boolean;
}

export interface LintRun {
  readonly document: LintJson;
  /** The function around each finding, in the order of `document.findings`. */
  readonly functions: readonly Finding["within"][];
  /** How many fixes were written. */
  readonly fixed: number;
  /** A path that was named on the command line could not be checked. */
  readonly isIncomplete: boolean;
}

interface Checked {
  readonly finding: LintFindingJson;
  readonly within: Finding["within"];
}

/** Throws TM-E002 for unknown rules, and if the paths contain no Python file. */
export async function lintPaths(request: LintRequest): Promise<LintRun> {
  const rules = chosenRules(request);
  const exclude = { folder: process.cwd(), patterns: request.exclude ?? [] };
  const found = findSourceFiles(request.paths, [exclude], request.settingsExclude);
  if (found.files.length === 0 && found.unreadable.length === 0 && found.excluded === 0) {
    throw badUsage(
      `no Python file below ${request.paths.join(", ")}`,
      "name a file or a folder with .py files",
    );
  }
  const parse = await pythonParser();
  const run = new Run(rules, request, parse);
  for (const { path, reason, isNamed } of found.unreadable) {
    run.report(path, 0, reason, isNamed);
  }
  const emptied = removalsOf(found.files);
  for (const file of found.files) {
    run.check(file, emptied.get(moduleNameOf(file.path)) ?? new Set());
  }
  return run.result();
}

/** For each module, the names from which other files remove entries. */
function removalsOf(files: readonly SourceFile[]): Map<string, Set<string>> {
  const byModule = new Map<string, Set<string>>();
  for (const { path } of files) {
    const source = readSource(path);
    for (const removal of "text" in source ? removalsIn(source.text) : []) {
      const [module = "", name = ""] = removal.split(".");
      byModule.set(module, (byModule.get(module) ?? new Set()).add(name));
    }
  }
  return byModule;
}

class Run {
  readonly #checked: Checked[] = [];
  readonly #errors: LintJson["errors"] = [];
  #files = 0;
  #lines = 0;
  #suppressed = 0;
  #fixed = 0;
  #isIncomplete = false;

  constructor(
    readonly rules: ReadonlySet<Rule>,
    readonly request: LintRequest,
    readonly parse: ParsePython,
  ) {}

  report(file: string, line: number, message: string, isNamed = false): void {
    this.#errors.push({ file, line, message });
    this.#isIncomplete ||= isNamed;
  }

  check(file: SourceFile, emptiedElsewhere: ReadonlySet<string>): void {
    const source = readSource(file.path);
    if ("problem" in source) {
      this.report(file.path, 0, source.problem, file.isNamed);
      return;
    }
    const off = rulesOff(file.path, this.request);
    const first = this.#checkText(source.text, file, off, emptiedElsewhere);
    const fixes = this.request.fix === true ? first.flatMap(({ fix }) => fix ?? []) : [];
    if (fixes.length === 0) {
      this.#keep(file.path, first);
      return;
    }
    const { text, applied } = applyFixes(source.text, fixes);
    const problem = writeSource(file.path, text, source);
    if (problem !== null) {
      this.report(file.path, 0, problem, true);
      this.#keep(file.path, first);
      return;
    }
    this.#fixed += applied;
    this.#lines -= first.lines;
    this.#suppressed -= first.suppressed;
    this.#files--;
    this.#keep(file.path, this.#checkText(text, file, off, emptiedElsewhere));
  }

  result(): LintRun {
    return {
      document: {
        schema: "tidemark.lint/1",
        findings: this.#checked.map(({ finding }) => finding),
        files: this.#files,
        lines: this.#lines,
        suppressed: this.#suppressed,
        baselined: 0,
        errors: this.#errors,
      },
      functions: this.#checked.map(({ within }) => within),
      fixed: this.#fixed,
      isIncomplete: this.#isIncomplete,
    };
  }

  #checkText(
    text: string,
    file: SourceFile,
    off: ReadonlySet<Rule>,
    emptiedElsewhere: ReadonlySet<string>,
  ): CheckedText {
    const tree = this.parse(text);
    if (tree === null) {
      this.report(file.path, 0, "takes too long to parse: it was not checked", file.isNamed);
      return Object.assign([], { lines: 0, suppressed: 0, source: null });
    }
    const isEnabled = (rule: Rule) => this.rules.has(rule) && !off.has(rule);
    const { findings, suppressed } = checkSource(tree, file.path, isEnabled, emptiedElsewhere);
    if (tree.unknownSyntaxLine !== null) {
      this.report(
        file.path,
        tree.unknownSyntaxLine,
        "contains syntax that the parser does not know: the rest was checked",
      );
    }
    if (tree.tooDeepLine !== null) {
      this.report(
        file.path,
        tree.tooDeepLine,
        "is nested too deeply in one place: the rest was checked",
      );
    }
    this.#files++;
    this.#lines += tree.source.lines;
    this.#suppressed += suppressed;
    return Object.assign([...findings], {
      lines: tree.source.lines,
      suppressed,
      source: tree.source,
    });
  }

  #keep(path: string, findings: CheckedText): void {
    const { source } = findings;
    for (const finding of source === null ? [] : findings) {
      this.#checked.push({
        finding: jsonOf(path, finding, source as SourceText),
        within: finding.within,
      });
    }
  }
}

type CheckedText = Finding[] & {
  readonly lines: number;
  readonly suppressed: number;
  readonly source: SourceText | null;
};

function rulesOff(path: string, { perFileIgnores = [] }: LintRequest): Set<Rule> {
  return new Set(
    perFileIgnores.flatMap(({ paths, rules }) =>
      isMatched(path, [paths]) ? rulesNamed(rules) : [],
    ),
  );
}

function jsonOf(file: string, finding: Finding, source: SourceText): LintFindingJson {
  const { rule, line, column, endLine, endColumn, severity, message, text, fix } = finding;
  const place = (offset: number) => {
    const at = source.lineAt(offset);
    return { line: at, column: offset - source.startOfLine(at) + 1 };
  };
  return {
    ...{ file, line, column, endLine, endColumn },
    ...{ rule: rule.id, name: rule.name, severity, message, text },
    ...(fix === null
      ? {}
      : {
          fix: {
            description: fix.description,
            edits: fix.edits.map((edit) => {
              const [start, end] = [place(edit.start), place(edit.end)];
              return { ...start, endLine: end.line, endColumn: end.column, text: edit.text };
            }),
          },
        }),
  };
}
