/** Finds a process by a part of its command line: `tidemark attach --name gunicorn`. */
import { basename } from "node:path";
import { readPythonProcesses } from "../../linux/index.js";
import type { Pid } from "../../model/base/units.js";
import { badUsage, oneLine } from "../../model/errors/errors.js";

interface NamedProcess {
  readonly pid: Pid;
  readonly parentPid: Pid;
  readonly command: readonly string[];
}

const MOST_LISTED = 5;
const LONGEST_SHOWN = 80;

/**
 * The Python process whose command line matches; for a server and its workers, the server. `pattern` is text or
 * a regular expression. Throws TidemarkError (TM-E002) if none or several unrelated ones match.
 */
export function processByName(pattern: string): Pid {
  return chooseByName(readPythonProcesses(false), pattern);
}

/** @internal */
export function chooseByName(processes: readonly NamedProcess[], pattern: string): Pid {
  const matches = matcher(pattern);
  const named = processes.filter(({ command }) => matches(command.join(" ")));
  const pids = new Set(named.map(({ pid }) => pid));
  const roots = named.filter(({ parentPid }) => !pids.has(parentPid));
  const [root, ...others] = roots;
  if (root === undefined) {
    throw badUsage(
      `no Python process has '${pattern}' in its command line`,
      "list them: tidemark ps",
    );
  }
  if (others.length > 0) {
    const texts = withoutCommonBeginning(roots.map(({ command }) => command));
    const listed = roots
      .slice(0, MOST_LISTED)
      .map(({ pid }, at) => `${pid} (${oneLine(texts[at] ?? "", LONGEST_SHOWN)})`)
      .join(", ");
    const more = roots.length > MOST_LISTED ? ` and ${roots.length - MOST_LISTED} more` : "";
    throw badUsage(
      `${roots.length} processes have '${pattern}' in their command lines: ${listed}${more}`,
      "give one of their pids, or a longer name",
    );
  }
  return root.pid;
}

/** Command lines from the first differing word on: "… --port 8001"; the program without its folders. */
function withoutCommonBeginning(commands: readonly (readonly string[])[]): string[] {
  const [first = []] = commands;
  const differing = first.findIndex((word, at) => commands.some((words) => words[at] !== word));
  const last = Math.min(...commands.map((words) => words.length)) - 1;
  const at = differing < 0 ? last : differing;
  const common = first[at - 1]?.startsWith("-") ? at - 1 : at; // keep an option together with its value
  return commands.map((words) =>
    common > 0
      ? `… ${words.slice(common).join(" ")}`
      : [basename(words[0] ?? ""), ...words.slice(1)].join(" "),
  );
}

function matcher(pattern: string): (text: string) => boolean {
  try {
    const expression = new RegExp(pattern);
    return (text) => expression.test(text) || text.includes(pattern);
  } catch {
    return (text) => text.includes(pattern);
  }
}
