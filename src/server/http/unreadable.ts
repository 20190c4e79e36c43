/** Answers to what Node's HTTP parser refuses before there is a request: one line, as for any other refusal. */
import type { Server } from "node:http";
import type { Bytes } from "../../model/base/units.js";
import { JSON_TYPE, refusalText } from "../answers/refusal.js";

/** Two selectors of the longest length, percent-encoded, and a browser's other headers. */
export const MOST_HEADER_BYTES: Bytes = 131_072;

const ANSWERS: Readonly<Record<string, readonly [status: string, line: string]>> = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    `the address and the headers are longer than ${MOST_HEADER_BYTES >> 10} KiB together`,
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "the request did not arrive in time"],
};

export function answerUnreadable(server: Server): void {
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || error.code === "ECONNRESET") {
      socket.destroy();
      return;
    }
    const [status, line] = ANSWERS[error.code ?? ""] ?? ["400 Bad Request", "this is not HTTP"];
    const body = refusalText(line, "invalid_argument");
    socket.end(
      `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: ${JSON_TYPE}\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  });
}
