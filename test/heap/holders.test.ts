/** Where objects accumulate, by the name of the variable that holds them, on every interpreter found here. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  holderOf,
  nodesOfType,
  type ObjectGraph,
  takeGraph,
} from "../../src/cpython/heap/index.js";
import { openProcessMemory } from "../../src/linux/index.js";
import { float64At } from "../../src/model/base/columns.js";
import { environment } from "../environment.js";
import { start, type Waiting } from "../python_program.js";
import { repository } from "../run.js";

const program = readFileSync(join(repository, "test/heap/programs/holders.py"), "utf8");
const interpreters = environment.interpreters.filter(({ freeThreaded }) => !freeThreaded);

describe.each(interpreters.map((one) => [`Python ${one.version} ${one.path}`, one] as const))(
  "%s",
  (_name, { path, chroot }) => {
    let waiting: Waiting;
    let objects: ObjectGraph;

    beforeAll(async () => {
      const words = [path, "-c", program];
      waiting = await start(chroot === undefined ? words : ["chroot", chroot, ...words]);
      const memory = openProcessMemory(waiting.pid);
      try {
        ({ objects } = await vi.waitFor(() => takeGraph(memory, { maxPauseMs: 60_000 }, 0), {
          timeout: 60_000, // a thread cannot be stopped while it reads from a busy disk
        }));
      } finally {
        memory.close();
      }
    });
    afterAll(async () => await waiting.stop());

    const pathOf = (type: string) => {
      const nodes = nodesOfType(objects, type);
      expect(nodes.length).toBeGreaterThan(0);
      return holderOf(objects, nodes)?.path ?? [];
    };

    test.each([
      ["InList", ["module __main__", "several"]],
      ["InDict", ["module __main__", "indexed"]],
      ["InClass", ["module __main__", "Registry", ".members"]],
      ["InShards", ["module __main__", "registry", ".shards"]],
      ["InConnections", ["module __main__", "connections", "each of 6", ".history"]],
      ["InSessions", ["module __main__", "sessions"]],
      ["InScratch", ["module __main__", "scratch", ".rows"]],
      ["InDepth", ["module __main__", "depth", ".top", ".below × 4,999"]],
      ["Link", ["module __main__", "undo", ".top", ".below × 399"]],
      ["InReplay", ["module __main__", "remembered", "collections.deque[...]", ".below × 156"]],
      ["Reading", ["module __main__", "meters", "each of 5", ".last"]],
      ["InClosure", ["module __main__", "handler", "closure variable seen"]],
      ["InDefault", ["module __main__", "add", "default of bucket"]],
      [
        "InMeter",
        ["module __main__", "on_tick", "list[...]", ".__self__ (__main__.Meter)", ".readings"],
      ],
      ["InModules", ["sys.modules"]],
      ["InGlobals", ["module __main__", "__dict__"]],
    ])("%s is held by a name that the module leads to", (type, expected) => {
      expect(pathOf(`__main__.${type}`)).toEqual(expected);
    });

    test.each([
      ["InQueue", "jobs"],
      ["InElements", "document"],
      ["InMemo", "pickler"],
    ])("%s is held in a C table, by the object that owns it", (type, name) => {
      // A queue has a list of its own up to 3.12.
      expect(pathOf(`__main__.${type}`).slice(0, 2)).toEqual(["module __main__", name]);
    });

    test("one of a few objects with names of their own is not the holder of the others", () => {
      expect(pathOf("__main__.InNames")).toEqual([]);
    });

    test("an attribute of a str subclass is held by the holder of the instance", () => {
      expect(pathOf("__main__.InTitle").slice(0, 2)).toEqual(["module __main__", "titles"]);
    });

    test("an object that grows in its own buffer is named itself", () => {
      expect(pathOf("bytearray")).toEqual(["module __main__", "upload", ".received"]);
    });

    test("arguments of a thread are attributed to their holder, not to threading's own table", () => {
      const path = pathOf("__main__.InService");
      expect(path.slice(-2)).toEqual(["local service", ".seen"]);
      expect(path[0]).toMatch(/^thread /);
    });

    test("waiting objects are attributed to their holder, not to the event loop", () => {
      const path = pathOf("__main__.InHub");
      expect(path.slice(0, 3)).toEqual(["module __main__", "hub", ".rooms"]);
      expect(path.at(-1)).toBe('dict["members"]');
    });

    test("objects that seem to be held by a set of weak references are attributed to their holder", () => {
      expect(pathOf("__main__.InPumps").slice(0, 3)).toEqual([
        "module __main__",
        "gateway",
        ".services",
      ]);
    });

    test("a cache keeps its entries in a dict and in a list: it owns both", () => {
      const nodes = nodesOfType(objects, "__main__.InCache");
      const holder = holderOf(objects, nodes);
      expect(holder?.path.slice(0, 2)).toEqual(["module __main__", "cached"]);
      const least = nodes.reduce((sum, node) => sum + float64At(objects.tree.retained, node), 0);
      expect(holder?.retainedBytes).toBeGreaterThanOrEqual(least);
    });

    test.each([
      ["InGenerator", "local produced"],
      ["InLocal", "local results"],
      ["InPort", "local port"],
      ["InThread", "local history"],
      ["InCoroutine", "local pending"],
      ["InTraceback", "local lost"],
      ["InThreadLocal", 'dict["results"]'],
      ["InContext", "context variable trail"],
      ["InKeywordDefault", 'dict["known"]'],
    ])("%s is held by a variable", (type, expected) => {
      expect(pathOf(`__main__.${type}`)).toContain(expected);
    });
  },
);
