import { expect, test } from "vitest";
import { evidenceOf } from "../../diagnose/evidence/evidence.fixture.js";
import { diagnose } from "../../diagnose/index.js";
import { makeScreen } from "../text/output.js";
import { printDiagnosis } from "./diagnosis.js";

function printed(text: string): string {
  const lines: string[] = [];
  const screen = makeScreen({ columns: 120, cuts: false, colour: false }, (line) =>
    lines.push(line),
  );
  const options = { leftOut: 0, unmatched: undefined, quiet: false };
  printDiagnosis(screen, diagnose(evidenceOf(text)), options);
  return lines.join("\n");
}

const LEAK = "anonRssBytes 40 + 1/s\nsite record keeps 1/s";

test("a holder that was counted long before the end of the window shows when", () => {
  const holder = "holder record held=40 path=app>history entries=900";
  expect(printed(`${LEAK}\n${holder}`)).toMatch(/app → history \(900 entries, 60.0 MiB\)/);
  expect(printed(`${LEAK}\n${holder} at=20s`)).toMatch(
    /app → history \(900 entries, 60.0 MiB, counted 40.0 s before the end\)/,
  );
});

test("a holder whose objects are small beside what a library allocates for them is explained", () => {
  const text = (retained: number) =>
    `anonRssBytes 40 + 1/s\nsite first keeps 1/s domain=native
     holder first held=40 path=app>cursors entries=900 retained=${retained}`;
  expect(printed(text(1))).toMatch(/\(900 entries, 1.00 MiB without its native memory\)/);
  expect(printed(text(50))).toMatch(/\(900 entries, 50.0 MiB\)/);
});
