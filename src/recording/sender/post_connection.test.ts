import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { PostConnection } from "./post_connection.js";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) {
    close();
  }
});

/** Answers `answers` requests of each connection, then closes it when the next one arrives. */
async function startServer(answers: number) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    let left = answers;
    socket.on("error", () => {});
    socket.on("data", () => {
      if (left-- > 0) {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
      } else {
        socket.resetAndDestroy();
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = new PostConnection({ url, token: null });
  closing.push(() => {
    connection.close();
    server.close();
    for (const socket of sockets) {
      socket.destroy();
    }
  });
  return { connection, sockets };
}

test("a connection that the server closed while it was idle is opened again", async () => {
  const { connection, sockets } = await startServer(1);
  for (let time = 1; time <= 3; time++) {
    expect(await connection.post("/", Buffer.from("x"), 5_000)).toEqual({ status: 200, body: {} });
    expect(sockets).toHaveLength(time);
  }
});

test("a server that closes each connection at once is asked once", async () => {
  const { connection, sockets } = await startServer(0);
  expect(await connection.post("/", Buffer.from("x"), 5_000)).toEqual({
    silence: expect.stringMatching(/ECONNRESET|socket hang up/),
  });
  expect(sockets).toHaveLength(1);
});
