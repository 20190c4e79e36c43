/** Graphs of objgraph (`show_backrefs(filename="x.dot")`): objects and what refers to them, without sizes. */
import { ImportedSites } from "./imported_sites.js";
import {
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  NO_SERIES,
  type ProfileImporter,
} from "./importer.js";

const MOST_PATHS = 10;
const LONGEST_PATH = 30;

export const objgraph: ProfileImporter = {
  name: "objgraph",
  description: "objgraph: .dot files of show_backrefs and show_refs",
  recognizes: ({ head }) => /^\s*digraph ObjectGraph \{/.test(head),
  read,
};

interface DotGraph {
  readonly names: ReadonlyMap<string, string>;
  /** Nodes that refer to a node, with the name of the reference. */
  readonly referrers: ReadonlyMap<string, readonly { from: string; by: string }[]>;
  readonly referring: ReadonlySet<string>;
}

function read(file: ForeignFile): ForeignRecording {
  const text = file.bytes.toString("utf8");
  if (!text.trimEnd().endsWith("}")) {
    throw new ForeignFault("it is cut off before its last brace");
  }
  const graph = parse(text);
  if (graph.names.size === 0) {
    throw new ForeignFault("it has no object");
  }
  const startedMs = file.writtenMs;
  return {
    tool: "objgraph",
    precision: "unknown",
    known: [],
    tables: new ImportedSites({ pid: 0, command: [], python: "", startedMs }).tables(),
    snapshots: [],
    startedMs,
    endedMs: startedMs,
    ...NO_SERIES,
    limits: [
      `The file has ${graph.names.size} objects and their references, without sizes.`,
      ...pathsOf(graph).map((path) => `Held by: ${path}.`),
    ],
  };
}

function parse(text: string): DotGraph {
  const names = new Map<string, string>();
  const referrers = new Map<string, { from: string; by: string }[]>();
  const referring = new Set<string>();
  for (const line of text.split("\n")) {
    const [, node, label] = /^\s*(\w+)\[label="((?:[^"\\]|\\.)*)"/.exec(line) ?? [];
    if (node !== undefined && label !== undefined) {
      names.set(node, label.replaceAll("\\n", " ").replaceAll("\\", "").trim());
      continue;
    }
    const [, from, to, edge = ""] = /^\s*(\w+) -> (\w+)(?: \[(.*)\])?/.exec(line) ?? [];
    if (from !== undefined && to !== undefined) {
      const by = /label="((?:[^"\\]|\\.)*)"/.exec(edge)?.[1] ?? "";
      const known = referrers.get(to);
      if (known === undefined) {
        referrers.set(to, [{ from, by }]);
      } else {
        known.push({ from, by });
      }
      referring.add(from);
    }
  }
  return { names, referrers, referring };
}

/** From a holder to each object that refers to nothing in the graph, by the first reference. */
function pathsOf({ names, referrers, referring }: DotGraph): string[] {
  const ends = [...names.keys()].filter((node) => !referring.has(node));
  return ends.slice(0, MOST_PATHS).map((end) => {
    const steps: string[] = [names.get(end) ?? end];
    const seen = new Set([end]);
    let at = end;
    while (steps.length < LONGEST_PATH) {
      const referrer = referrers.get(at)?.find(({ from }) => !seen.has(from));
      if (referrer === undefined) {
        break;
      }
      at = referrer.from;
      seen.add(at);
      steps.push(`${names.get(at) ?? at}${referrer.by === "" ? "" : ` (${referrer.by})`}`);
    }
    return steps.reverse().join(" -> ");
  });
}
