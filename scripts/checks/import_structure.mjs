/**
 * Rules about imports that dependency-cruiser cannot express: both look at several imports together.
 *
 * - `folders-form-no-circles`: the folders of src/ and web/src import each other in one direction. A folder is the
 *   directory that contains a file. A folder's index.ts is its public interface and does not count as an importer;
 *   imports of types count; tests and fixtures do not.
 * - `commands-import-one-room`: a command file uses the index.ts of one room besides `cli` and `model`.
 */
import { posix } from "node:path";

/**
 * @typedef {{source: string, dependencies: {resolved: string}[]}} Module as dependency-cruiser's JSON has it
 * @typedef {{rule: string, from: string, to: string}} Violation
 * @typedef {{from: string, to: string}} Import of a file by a file
 */

/** @param {readonly Module[]} modules @returns {Violation[]} */
export function structureViolations(modules) {
  return [...circlesOfFolders(modules), ...commandsOfSeveralRooms(modules)];
}

/** One violation for each pair of folders within a circle: the first import between them. @param {readonly Module[]} modules */
function circlesOfFolders(modules) {
  const imports = importsBetweenFolders(modules);
  const circles = stronglyConnected(imports);
  /** @type {Violation[]} */
  const violations = [];
  for (const [folder, targets] of imports) {
    for (const [target, { from, to }] of targets) {
      if (circles.get(folder) === circles.get(target)) {
        violations.push({ rule: "folders-form-no-circles", from, to });
      }
    }
  }
  return violations;
}

/**
 * The first import from each folder to each other folder.
 * @param {readonly Module[]} modules
 */
function importsBetweenFolders(modules) {
  /** @type {Map<string, Map<string, Import>>} */
  const imports = new Map();
  const counted = modules.filter(
    ({ source }) => isCounted(source) && !source.endsWith("/index.ts"),
  );
  for (const { source, dependencies } of counted) {
    const folder = posix.dirname(source);
    const targets = imports.get(folder) ?? new Map();
    imports.set(folder, targets);
    for (const { resolved } of dependencies) {
      const target = posix.dirname(resolved);
      if (isCounted(resolved) && target !== folder && !targets.has(target)) {
        targets.set(target, { from: source, to: resolved });
      }
    }
  }
  return imports;
}

/** @param {string} path */
function isCounted(path) {
  return /^(?:src|web\/src)\//.test(path) && !/\.(?:test|fixture)\.tsx?$|\/fixtures\//.test(path);
}

/**
 * Tarjan's algorithm ("Depth-first search and linear graph algorithms", 1972).
 * @param {ReadonlyMap<string, ReadonlyMap<string, unknown>>} graph targets by node
 * @returns {Map<string, number>} by node, a number that all nodes of one strongly connected component share
 */
function stronglyConnected(graph) {
  /** @type {Map<string, number>} */
  const order = new Map();
  /** @type {Map<string, number>} */
  const component = new Map();
  /** @type {string[]} */
  const open = [];
  /** @param {string} node @returns {number} */
  const visit = (node) => {
    const own = order.size;
    order.set(node, own);
    let low = own;
    open.push(node);
    for (const target of graph.get(node)?.keys() ?? []) {
      if (!order.has(target)) {
        low = Math.min(low, visit(target));
      } else if (!component.has(target)) {
        low = Math.min(low, order.get(target) ?? own);
      }
    }
    if (low === own) {
      for (const member of open.splice(open.indexOf(node))) {
        component.set(member, own);
      }
    }
    return low;
  };
  for (const node of graph.keys()) {
    if (!order.has(node)) {
      visit(node);
    }
  }
  return component;
}

/** @param {readonly Module[]} modules @returns {Violation[]} */
function commandsOfSeveralRooms(modules) {
  return modules.flatMap(({ source, dependencies }) => {
    if (!/^src\/cli\/commands\/[^/]+\.ts$/.test(source)) {
      return [];
    }
    const rooms = dependencies.flatMap(({ resolved }) => {
      const [, room] = /^src\/([^/]+)\/index\.ts$/.exec(resolved) ?? [];
      return room === undefined || room === "model" ? [] : [room];
    });
    const names = [...new Set(rooms)];
    return names.length < 2
      ? []
      : [{ rule: "commands-import-one-room", from: source, to: names.join(" and ") }];
  });
}
