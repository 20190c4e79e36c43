/** SARIF 2.1.0, https://docs.oasis-open.org/sarif/sarif/v2.1.0/: what code scanning services read. */
import { TIDEMARK_VERSION } from "../../linux/installation.js";
import type { LintFindingJson, LintJson } from "../../model/documents/lint_document.js";

interface RuleText {
  readonly id: string;
  readonly name: string;
  readonly severity: string;
  readonly finds: string;
  readonly why: string;
}

export function sarifOf(document: LintJson, rules: readonly RuleText[]): object {
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: {
          driver: {
            name: "tidemark lint",
            semanticVersion: TIDEMARK_VERSION,
            rules: rules.map(({ id, name, severity, finds, why }) => ({
              id,
              name,
              shortDescription: { text: finds },
              fullDescription: { text: why },
              defaultConfiguration: { level: severity },
            })),
          },
        },
        columnKind: "utf16CodeUnits",
        results: document.findings.map((finding) => resultOf(finding, rules)),
        invocations: [
          {
            executionSuccessful: true,
            toolExecutionNotifications: document.errors.map(({ file, line, message }) => ({
              level: "warning",
              message: { text: `${file} ${message}` },
              locations: [locationOf(file, { startLine: Math.max(1, line) })],
            })),
          },
        ],
      },
    ],
  };
}

function resultOf(finding: LintFindingJson, rules: readonly RuleText[]): object {
  const { file, line, column, endLine, endColumn, rule, severity, message, fix } = finding;
  return {
    ruleId: rule,
    ruleIndex: rules.findIndex(({ id }) => id === rule),
    level: severity,
    message: { text: message },
    locations: [locationOf(file, { startLine: line, startColumn: column, endLine, endColumn })],
    ...(fix === undefined
      ? {}
      : {
          fixes: [
            {
              description: { text: fix.description },
              artifactChanges: [
                {
                  artifactLocation: { uri: uriOf(file) },
                  replacements: fix.edits.map((edit) => ({
                    deletedRegion: {
                      startLine: edit.line,
                      startColumn: edit.column,
                      endLine: edit.endLine,
                      endColumn: edit.endColumn,
                    },
                    insertedContent: { text: edit.text },
                  })),
                },
              ],
            },
          ],
        }),
  };
}

function locationOf(file: string, region: object): object {
  return { physicalLocation: { artifactLocation: { uri: uriOf(file) }, region } };
}

/** A relative path stays relative to the folder that was scanned. */
function uriOf(path: string): string {
  const encoded = path.split("/").map(encodeURIComponent).join("/");
  return path.startsWith("/") ? `file://${encoded}` : encoded;
}
