/** Sampled objects that are part of a handle show which stack creates the handles. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { anyInterpreter } from "../../test/environment.js";
import { startPython, type Waiting } from "../../test/python_program.js";
import { type ObjectGraph, takeGraph } from "../cpython/heap/index.js";
import { openProcessMemory } from "../linux/index.js";
import type { NodeId } from "../model/heap/heap_graph.js";
import { makerOf } from "./handle_makers.js";
import { handleObjects } from "./handle_objects.js";

const PROGRAM = `
import socket
class Client:
    def __init__(self):
        self.sockets = socket.socketpair()
        self.name = f"client {id(self)}"
clients = [Client() for _ in range(40)]
notes = [f"note {n}" * 40 for n in range(40)]
import mmap
maps = [mmap.mmap(-1, 4096) for _ in range(4)]
say({"maps": id(maps), "map": id(maps[1]), "name": id(clients[3].name), "socket": id(clients[5].sockets[1]), "list": id(clients),
     "notes": [id(note) for note in notes]})
`;
const [ACCEPT, WRITE] = [7, 9];
let waiting: Waiting;
let objects: ObjectGraph;
let handles: readonly NodeId[];

beforeAll(async () => {
  waiting = await startPython(anyInterpreter(), PROGRAM);
  const memory = openProcessMemory(waiting.pid);
  ({ objects } = await takeGraph(memory, { maxPauseMs: 60_000 }, 0));
  memory.close();
  handles = handleObjects(objects, new Set(["openSockets"])).nodes;
});
afterAll(async () => await waiting.stop());

const address = (name: string) => Number(waiting.said[name]);
const notes = () => ({ stack: WRITE, addresses: waiting.said.notes as number[] });

test("one sample in a handle outweighs any number elsewhere", () => {
  expect(handles).toHaveLength(80);
  const found = { stack: ACCEPT, addresses: [address("socket")] };
  expect(makerOf(objects, handles, [notes(), found])).toBe(ACCEPT);
});

test("an object that would be freed with a handle counts, too", () => {
  const found = { stack: ACCEPT, addresses: [address("name")] };
  expect(makerOf(objects, handles, [notes(), found])).toBe(ACCEPT);
});

test("a common holder, unrelated objects, and no objects give no result", () => {
  expect(makerOf(objects, handles, [notes()])).toBeNull();
  expect(makerOf(objects, handles, [{ stack: WRITE, addresses: [address("list")] }])).toBeNull();
  expect(makerOf(objects, handles, [{ stack: WRITE, addresses: [0, 4096, 2 ** 46] }])).toBeNull();
  expect(makerOf(objects, handles, [])).toBeNull();
});

test("an object that holds all of a few handles is not part of one of them", () => {
  const few = handleObjects(objects, new Set(["shmemRssBytes"])).nodes;
  expect(few).toHaveLength(4);
  const holder = address("maps");
  expect(makerOf(objects, few, [{ stack: WRITE, addresses: [holder] }])).toBeNull();
  const one = { stack: ACCEPT, addresses: [address("map")] };
  expect(makerOf(objects, few, [{ stack: WRITE, addresses: [holder] }, one])).toBe(ACCEPT);
});

test("handles that do not grow are not looked up, however many there are", () => {
  expect(handleObjects(objects, new Set(["threads"]))).toEqual({ type: "", nodes: [] });
  expect(handleObjects(objects, new Set(["threads", "openSockets"])).type).toBe("_socket.socket");
});
