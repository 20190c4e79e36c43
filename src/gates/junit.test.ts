import { expect, test } from "vitest";
import type { CheckJson, GateJson } from "../model/documents/check_document.js";
import { junitXml } from "./junit.js";

function gate(changes: Partial<GateJson>): GateJson {
  return {
    gate: "peak",
    unit: "bytes",
    limit: 1,
    value: 2,
    passed: true,
    decided: true,
    reason: "fine",
    ...changes,
  };
}

function check(...gates: GateJson[]): CheckJson {
  return {
    schema: "tidemark.check/1",
    target: { pid: 1, command: ["sh", "-c", 'echo "<&>"'], python: "", startedMs: 0 },
    window: { startMs: 0, endMs: 1500, points: 3 },
    exitCode: 0,
    passed: gates.every(({ passed }) => passed),
    gates,
    suspects: [],
    recording: null,
    durationMs: 1500,
    limits: [],
  };
}

test("one case for each gate, with the counts that servers show", () => {
  const xml = junitXml(
    check(
      gate({}),
      gate({ gate: "growth", passed: false, reason: 'over <10> & "more"\u0007' }),
      gate({ gate: "leak", decided: false, reason: "too short" }),
    ),
    ({ gate: name }) => [`about ${name}`, "]]> & more"],
  );
  expect(xml).toContain('tests="3" failures="1" errors="0" skipped="1" time="1.500"');
  expect(xml).toContain('timestamp="1970-01-01T00:00:00"');
  expect(xml).toContain('message="over &lt;10&gt; &amp; &quot;more&quot;?" type="finding">');
  expect(xml).toContain("about growth\n]]&gt; &amp; more</failure>");
  expect(xml).toContain('<skipped message="too short"/>');
  expect(xml).toContain('classname="sh -c echo &quot;&lt;&amp;&gt;&quot;" name="peak"');
});
