/** The actions of collectors in a terminal. */
import { formatCount, formatWallClock } from "../../model/base/numbers.js";
import type { ActionsJson } from "../../model/documents/action_document.js";
import { actionText } from "../../model/documents/action_text.js";
import { oneLine } from "../../model/errors/errors.js";
import { type CommonOptions, type ListOptions, selectRows } from "../options/options.js";
import { type Column, printTable, type Screen } from "../text/output.js";

const DEFAULT_ROWS = 50;

export function printActions(
  screen: Screen,
  { actions, limits }: ActionsJson,
  options: ListOptions & CommonOptions,
): void {
  const { paint } = screen;
  const { rows, unmatched, leftOut } = selectRows(
    actions,
    options,
    DEFAULT_ROWS,
    ({ timeMs }) => timeMs,
    ({ service, version, host, what, state, reason }) =>
      [service, version, host, what, state, reason].join(" "),
  );
  if (rows.length === 0) {
    const none =
      "no collector has acted; a policy of tidemark watch allows actions (docs/actions.md)";
    screen.line(paint.dim(unmatched ?? none));
  } else {
    const columns: Column[] = [
      { title: "TIME" },
      { title: "STATE", paint: paint.bold },
      { title: "SERVICE", paint: paint.bold },
      { title: "VERSION" },
      { title: "HOST" },
      { title: "PID", align: "right" },
      { title: "", flexible: "cutEnd" },
    ];
    const cells = rows.map((action) => [
      formatWallClock(action.timeMs, true),
      action.state,
      oneLine(action.service),
      oneLine(action.version || "-"),
      oneLine(action.host),
      String(action.pid),
      actionText(action),
    ]);
    printTable(screen, columns, cells);
  }
  if (leftOut > 0) {
    screen.line();
    screen.line(`  ${paint.dim(`${formatCount(leftOut)} more; --top 0 shows all`)}`);
  }
  if (options.quiet !== true) {
    const line = `the server allows ${limits.service} of a service and ${limits.fleet} of all`;
    screen.line(`  ${paint.dim(line)}`);
  }
}
