/** The out-of-memory messages of a log, each with its explanation. */

import { formatBytes, formatCount } from "../../../model/base/numbers.js";
import type { OomEventJson, OomJson } from "../../../model/documents/gpu/gpu_document.js";
import { oneLine } from "../../../model/errors/errors.js";
import { type ListOptions, selectRows } from "../../options/options.js";
import type { Screen } from "../../text/output.js";
import { gpuSiteName } from "./site.js";
import { printLimits } from "./snapshot.js";

export const DEFAULT_OOM_EVENTS = 10;

/** The text that `--filter` searches. */
export function oomText(event: OomEventJson): string {
  const frames = event.stack.map((frame) => `${frame.function} ${frame.file}:${frame.line}`);
  return [
    event.kind,
    event.framework,
    `rank ${event.rank}`,
    event.writer,
    event.because,
    ...frames,
  ].join(" ");
}

export function printOom(
  screen: Screen,
  document: OomJson,
  options: ListOptions & { readonly quiet?: boolean },
): void {
  const { paint } = screen;
  if (document.events.length === 0) {
    screen.line(`No out-of-memory message in ${formatCount(document.lines)} lines.`);
    printLimits(screen, document.limits, options);
    return;
  }
  const { rows, leftOut, unmatched } = selectRows(
    document.events,
    options,
    DEFAULT_OOM_EVENTS,
    (event) => event.requestedBytes ?? 0,
    oomText,
  );
  for (const [index, event] of rows.entries()) {
    if (index > 0) {
      screen.line();
    }
    printEvent(screen, event);
  }
  if (unmatched !== undefined) {
    screen.line(paint.dim(`  ${unmatched}`));
  }
  if (leftOut > 0) {
    screen.line(paint.dim(`${formatCount(leftOut)} more`));
  }
  printLimits(screen, document.limits, options);
}

function printEvent(screen: Screen, event: OomEventJson): void {
  const { paint } = screen;
  const who = [
    `line ${formatCount(event.line)}`,
    event.rank === null ? event.writer : `rank ${event.rank}`,
    event.device === null ? "" : `device ${event.device}`,
    writerOf(event),
    event.repeats === 0 ? "" : `logged ${event.repeats + 1} times`,
  ].filter((part) => part !== "");
  screen.line(`${paint.red(paint.bold(event.kind))}  ${paint.dim(who.join(", "))}`);
  const figures: [string, number | null][] = [
    ["requested", event.requestedBytes],
    [event.memory, event.totalBytes],
    ["free", event.freeBytes],
    ["allocated", event.allocatedBytes],
    ["reserved, unused", event.reservedUnallocatedBytes],
    ["this process", event.processBytes],
  ];
  const known = figures.filter(([, bytes]) => bytes !== null);
  if (known.length > 0) {
    paragraph(
      screen,
      known.map(([name, bytes]) => `${name} ${formatBytes(bytes ?? 0)}`).join(", "),
    );
  }
  paragraph(screen, event.because);
  if (event.stack.length > 0) {
    screen.line(paint.dim(`  at ${gpuSiteName(event.stack)}`));
  }
  if (event.snapshot !== undefined) {
    paragraph(screen, `snapshot: ${event.snapshot}`);
  }
  for (const { id, text } of event.advice) {
    paragraph(screen, `${id} ${text}`, 8);
  }
}

function writerOf({ framework, library, torch }: OomEventJson): string {
  if (framework === "other") {
    return library === "" ? "unnamed library" : library;
  }
  const name = torch === "" ? framework : `PyTorch ${torch}`;
  return library === "" ? name : `${name}, ${library}`;
}

function paragraph(screen: Screen, text: string, indent = 0): void {
  screen.wrap(oneLine(text), 2 + indent).forEach((line, row) => {
    screen.line(`  ${row === 0 ? "" : " ".repeat(indent)}${line}`);
  });
}
