/**
 * A check as JUnit's XML, one test case per gate, as CI servers read it (Jenkins' junit-10.xsd, the common subset).
 * A gate that could not be decided and was allowed to pass is "skipped".
 */
import type { CheckJson, GateJson } from "../model/documents/check_document.js";

/** `describe`: the lines that people read about a gate. */
export function junitXml(
  { gates, target, durationMs, window }: CheckJson,
  describe: (gate: GateJson) => readonly string[],
): string {
  const count = (kind: "failure" | "skipped") => gates.filter((g) => outcomeOf(g) === kind).length;
  const seconds = (durationMs / 1000).toFixed(3);
  const suite = [
    `name="tidemark check"`,
    `tests="${gates.length}" failures="${count("failure")}" errors="0" skipped="${count("skipped")}"`,
    `time="${seconds}" timestamp="${new Date(window.startMs).toISOString().slice(0, 19)}"`,
  ].join(" ");
  const name = escapeXml(target.command.join(" ").slice(0, 200));
  const cases = gates.map((gate) => {
    const outcome = outcomeOf(gate);
    const open = `    <testcase classname="${name}" name="${gate.gate}" time="${seconds}"`;
    const message = escapeXml(gate.reason);
    if (outcome === "passed") {
      return `${open}/>`;
    }
    const body =
      outcome === "skipped"
        ? `<skipped message="${message}"/>`
        : `<failure message="${message}" type="${gate.decided ? "finding" : "undecided"}">${escapeXml(describe(gate).join("\n"))}</failure>`;
    return `${open}>\n      ${body}\n    </testcase>`;
  });
  return [
    `<?xml version="1.0" encoding="UTF-8"?>`,
    `<testsuites>`,
    `  <testsuite ${suite}>`,
    ...cases,
    `  </testsuite>`,
    `</testsuites>`,
    "",
  ].join("\n");
}

function outcomeOf({ passed, decided }: GateJson): "passed" | "failure" | "skipped" {
  if (!passed) {
    return "failure";
  }
  return decided ? "passed" : "skipped";
}

/** XML 1.0 has no control characters but tab and the line ends, not even escaped. */
function escapeXml(text: string): string {
  const clean = Array.from(text, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const isAllowed =
      code === 9 ||
      code === 10 ||
      code === 13 ||
      (code >= 0x20 && code < 0xd800) ||
      (code > 0xdfff && code < 0xfffe) ||
      code > 0xffff;
    return isAllowed ? character : "?";
  }).join("");
  return clean
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
