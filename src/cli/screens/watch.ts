/** What `tidemark watch` does, in a terminal or a log. */
import type { WatchEvent } from "../../collect/index.js";
import { formatBytes, formatCount, formatShare } from "../../model/base/numbers.js";
import type { WatchJson, WatchRowJson } from "../../model/documents/watch_document.js";
import { type Column, formatTable, type Screen } from "../text/output.js";

const GETS: Record<WatchRowJson["gets"], string> = {
  agent: "agent",
  outside: "from outside",
  never: "nothing",
};

export function printWatchTable(screen: Screen, { programs, policy }: WatchJson): void {
  if (programs.length === 0) {
    screen.line(screen.paint.dim("no Python program is running here"));
    return;
  }
  const columns: Column[] = [
    { title: "PID", align: "right" },
    { title: "SERVICE", paint: screen.paint.bold },
    { title: "VERSION" },
    { title: "PYTHON" },
    { title: "PROCESSES", align: "right" },
    { title: "RSS", align: "right" },
    { title: "RECORDED" },
    { title: "RULE" },
    { title: "COMMAND", flexible: "cutMiddle" },
  ];
  const cells = programs.map((row) => [
    String(row.pid),
    row.service,
    row.version || "-",
    row.python || "?",
    formatCount(row.processes),
    formatBytes(row.rssBytes),
    GETS[row.gets],
    row.rule === null ? "default" : String(row.rule),
    row.command.join(" "),
  ]);
  for (const line of formatTable(screen, columns, cells)) {
    screen.line(line);
  }
  for (const { pid, service, reason, remedy } of programs) {
    if (reason !== "") {
      const help = remedy === "" ? "" : `; ${remedy}`;
      screen.line(
        screen.paint.dim(`  ${service} (${pid}) cannot be attached to: ${reason}${help}`),
      );
    }
  }
  if (policy === "") {
    screen.line(
      screen.paint.dim("  no policy: every program that can be attached to gets the agent"),
    );
  }
}

/** One line for a log. */
export function watchEventText(event: WatchEvent): string {
  switch (event.kind) {
    case "attached":
      return `${nameOf(event)}: recording it with the agent to ${event.path}`;
    case "left":
      return `${nameOf(event)}: left as it was; its recording is ${event.path}`;
    case "refused":
      return `${nameOf(event)}: recorded from outside, because the agent could not be attached: ${event.why}`;
    case "failed":
      return `${nameOf(event)}: not recorded; the next attempt is in a minute: ${event.why}`;
    case "verdict": {
      const { kind, confidence, summary } = event.verdict;
      return `${nameOf(event)}: ${kind} (${formatShare(confidence)} sure). ${summary} Details: tidemark diagnose ${event.path}`;
    }
    case "policy":
      return event.why === ""
        ? "the policy was read again"
        : `the policy was not changed, because the new one is invalid: ${event.why}`;
    case "watching": {
      const { withAgent, outside, not } = event;
      const ignored = not === 0 ? "" : `, ${formatCount(not)} not recorded (tidemark watch --once)`;
      return `watching ${formatCount(withAgent + outside + not)} programs: ${formatCount(withAgent)} with the agent, ${formatCount(outside)} from outside${ignored}`;
    }
  }
}

function nameOf({ program: { root } }: Extract<WatchEvent, { program: unknown }>): string {
  const { service, version } = root.identity;
  return `${service}${version === "" ? "" : ` ${version}`} (process ${root.pid})`;
}
