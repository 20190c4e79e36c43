/** Among the open descriptors of one kind, the stack that opened most of them is found. */
import { closeSync, openSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readDescriptors } from "../linux/index.js";
import type { StackId } from "../model/base/units.js";
import type { Opening } from "../segment/index.js";
import { openerOf } from "./handle_openers.js";

const [ACCEPT, READ, WARM] = [7, 9, 11];
const files: number[] = [];
const servers: Server[] = [];

/** A descriptor of this process. */
beforeAll(async () => {
  files.push(...Array.from({ length: 6 }, () => openSync("/dev/null", "r")));
  for (let n = 0; n < 4; n++) {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    servers.push(server);
  }
});
afterAll(() => {
  files.map(closeSync);
  servers.map((server) => server.close());
});

const openings = (descriptors: readonly number[], stack: StackId): Opening[] =>
  descriptors.map((descriptor) => ({ descriptor, stack, openedMs: 0 }));

function sockets(): number[] {
  const links = [...(readDescriptors(process.pid) ?? [])];
  return links.filter(([, link]) => link.startsWith("socket:")).map(([descriptor]) => descriptor);
}

test("the stack with the most descriptors of the objects' kind", () => {
  const opened = [...openings(files, READ), ...openings(sockets().slice(0, 4), ACCEPT)];
  expect(openerOf(process.pid, "_io.FileIO", opened)).toBe(READ);
  expect(openerOf(process.pid, "_socket.socket", opened)).toBe(ACCEPT);
  expect(openerOf(process.pid, "", opened)).toBe(READ);
});

test("closed descriptors do not count", () => {
  const closed = Array.from({ length: 50 }, (_, n) => 5_000 + n);
  const opened = [...openings(closed, WARM), ...openings(files, READ)];
  expect(openerOf(process.pid, "_io.FileIO", opened)).toBe(READ);
  expect(openerOf(process.pid, "_io.FileIO", openings(closed, WARM))).toBeNull();
});

test("two may be coincidence, threads are not descriptors, and an ended process has none", () => {
  expect(openerOf(process.pid, "_io.FileIO", openings(files.slice(0, 2), READ))).toBeNull();
  expect(openerOf(process.pid, "threading.Thread", openings(files, READ))).toBeNull();
  expect(openerOf(2 ** 22 + 1, "_io.FileIO", openings(files, READ))).toBeNull();
});
