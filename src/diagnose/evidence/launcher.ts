/**
 * A program that was started by another one, which only waits for it: `timeout`, `tini`, a shell script.
 *
 *   run.sh ── timeout 60 ── python app.py ── worker
 *   launchers               the program
 */
import { isPassing, membersOf } from "../series/total_growth.js";
import type { Evidence, ProcessEvidence, TreeEvidence } from "./evidence.js";

/**
 * The program's process first, without its launchers. `processes`: a whole tree, its root first. Unchanged if the root runs Python,
 * or if it started more than one program that lasted.
 */
export function withoutLaunchers(
  processes: readonly ProcessEvidence[],
): Pick<Evidence, "processes" | "tree"> {
  const [root] = processes;
  let program = root;
  let rest = processes;
  while (program !== undefined && program.python === "") {
    const { pid } = program;
    rest = rest.filter((process) => process !== program && !isPassing(process));
    const [child] = rest;
    const isOnly = rest.filter(({ parentPid }) => parentPid === pid).length === 1;
    program = isOnly && child?.parentPid === pid ? child : undefined;
  }
  return root === undefined || program === undefined || program === root
    ? { processes }
    : { processes: rest, tree: { root, members: membersOf(processes) } };
}

/** null: no process is known. */
export function treeOf({
  processes,
  tree,
}: Pick<Evidence, "processes" | "tree">): TreeEvidence | null {
  const [root] = processes;
  return tree ?? (root === undefined ? null : { root, members: membersOf(processes) });
}
