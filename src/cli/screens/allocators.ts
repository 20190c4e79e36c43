/** What `tidemark allocators` prints: a row for each setting, the recommendation, what was not tried. */
import { formatBytes, formatDuration } from "../../model/base/numbers.js";
import { shellWord } from "../../model/base/shell_word.js";
import type { AllocatorsJson, ChangeJson } from "../../model/documents/allocators_document.js";
import { printTable, type Screen } from "../text/output.js";

/** The start of the reason of a setting that was tried. */
const FAILED = /^the program failed under it: /;

export function printAllocators(screen: Screen, document: AllocatorsJson): void {
  const { command, trials, rounds, recommendation, skipped, limits, best } = document;
  screen.line();
  const fewest = Math.min(rounds, ...trials.map(({ runs }) => runs.length));
  const range = fewest === rounds ? `${rounds}` : `${fewest} to ${rounds}`;
  screen.line(screen.paint.bold(`Medians of ${range} rounds; changes with 95 % intervals`));
  const right = (title: string) => ({ title, align: "right" as const });
  const rows = trials.map((trial) => [
    trial.allocator,
    trial.title,
    trial.loaded ? "yes" : "no",
    formatBytes(trial.peakRssBytes),
    formatBytes(trial.steadyRssBytes),
    changeText(trial.steadyChange),
    trial.liveBytes === null ? "?" : formatBytes(trial.liveBytes),
    formatDuration(trial.cpuMs),
    formatDuration(trial.wallMs),
  ]);
  const columns = [
    { title: "setting" },
    { title: "allocator", flexible: "cutEnd" as const },
    { title: "loaded" },
    ...["peak RSS", "steady RSS", "change", "live", "CPU", "wall"].map(right),
  ];
  printTable(screen, columns, rows);
  screen.line();
  for (const line of screen.wrap(recommendation, 0)) {
    screen.line(best === null ? line : screen.paint.green(line));
  }
  const chosen = trials.find(({ allocator }) => allocator === best);
  if (chosen !== undefined) {
    const words = command.map(shellWord).join(" ");
    const without = chosen.allocator === "trim" ? chosen.deploy : `${chosen.deploy} ${words}`;
    screen.line(`Next: tidemark run ${chosen.use} -- ${words}`);
    screen.line(`Without Tidemark: ${without}`);
  }
  for (const { allocator, reason, install } of skipped) {
    const next = install === undefined ? "" : `; ${install}`;
    const failure = reason.replace(FAILED, "");
    screen.line(
      failure === reason
        ? screen.paint.dim(`Not tried: ${allocator}: ${reason}${next}`)
        : screen.paint.red(`The program fails under ${allocator}: ${failure}`),
    );
  }
  for (const limit of limits) {
    for (const line of screen.wrap(limit, 0)) {
      screen.line(screen.paint.dim(line));
    }
  }
}

/** "-31 % (-33 to -29)". */
function changeText(change: ChangeJson | undefined): string {
  if (change === undefined) {
    return "";
  }
  const of = (value: number) =>
    value > 10
      ? ">+1,000"
      : `${value > 0.005 ? "+" : ""}${(value * 100).toFixed(0)}`.replace(/^-0$/, "0");
  return `${of(change.value)} % (${of(change.low)} to ${of(change.high)})`;
}
