/** What works on this machine, and how to enable the rest. */
import type { DoctorCheckJson, DoctorJson } from "../../model/documents/doctor_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { padEnd, type Screen, widthOf } from "../text/output.js";

const MARK_WIDTH = 9;

/**
 *     permissions
 *       ok       this user's processes  another process was read, paused for 0.4 ms
 *       limited  other users            user 1000 without CAP_SYS_PTRACE
 *                  does not work: processes of other users cannot be read
 *                  enable: run it as root: sudo tidemark ...
 *
 * `quiet`: only checks that are not ok.
 */
export function printDoctor(screen: Screen, document: DoctorJson, quiet: boolean): void {
  const { paint } = screen;
  const checks = document.checks.filter(({ state }) => !quiet || state !== "ok");
  const width = Math.max(0, ...checks.map(({ check }) => widthOf(check)));
  let area = "";
  for (const check of checks) {
    if (check.area !== area) {
      area = check.area;
      screen.line(paint.bold(area));
    }
    printCheck(screen, check, width);
  }
  if (!quiet) {
    screen.line();
    screen.line(conclusion(document));
  }
}

function printCheck(screen: Screen, check: DoctorCheckJson, width: number): void {
  const { paint } = screen;
  const colour = { ok: paint.green, limited: paint.yellow, missing: paint.red }[check.state];
  const indent = MARK_WIDTH + 2;
  const name = padEnd(check.check, width);
  const more = [
    check.effect === "" ? "" : `does not work: ${check.effect}`,
    check.remedy === "" ? "" : `enable: ${check.remedy}`,
  ].filter((text) => text !== "");
  const head = `  ${colour(padEnd(check.state, MARK_WIDTH))}${name}  `;
  if (!screen.cuts) {
    // One line per check, for searching.
    screen.line(`${head}${[check.found, ...more].map((text) => oneLine(text)).join("; ")}`);
    return;
  }
  const [first = "", ...others] = screen.wrap(oneLine(check.found), indent + width + 2);
  screen.line(`${head}${first}`);
  for (const line of others) {
    screen.line(`${" ".repeat(indent + width + 2)}${line}`);
  }
  for (const text of more) {
    for (const line of screen.wrap(oneLine(text), indent + 2)) {
      screen.line(`${" ".repeat(indent + 2)}${paint.cyan(line)}`);
    }
  }
}

function conclusion({ checks, ready }: DoctorJson): string {
  const count = (state: DoctorCheckJson["state"]) =>
    checks.filter((check) => check.state === state).length;
  const parts = [`${count("ok")} ok`, `${count("limited")} limited`, `${count("missing")} missing`];
  return `${ready ? "Everything needed works" : "Something is missing"}: ${parts.join(", ")}.`;
}
