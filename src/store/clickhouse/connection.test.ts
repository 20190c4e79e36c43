import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { expect, it } from "vitest";
import { openStore } from "../open_store.js";
import { clickhouseAddress, placeOf } from "./address.js";
import { ClickhouseConnection } from "./connection.js";
import { createStatements, dialectOf } from "./tables.js";

it("reads addresses, and shows them without the password", () => {
  const address = clickhouseAddress("clickhouse://ada:a%2Fb%3A%40c@db.internal:8124/fleet");
  expect(address).toEqual({
    ...{ host: "db.internal", port: 8124, user: "ada", password: "a/b:@c", database: "fleet" },
    cluster: null,
  });
  expect(placeOf(address)).toBe("clickhouse://ada@db.internal:8124/fleet");
  expect(clickhouseAddress("clickhouse://[::1]")).toMatchObject({
    ...{ host: "::1", port: 8123, user: "default", password: "", database: "tidemark" },
  });
  expect(clickhouseAddress("clickhouse://host:80/x").port).toBe(80);
  expect(clickhouseAddress("ClickHouse://ada:b@host/x").user).toBe("ada");
  const divided = clickhouseAddress("clickhouse://host/x?cluster=two-shards");
  expect(divided).toMatchObject({ host: "host", database: "x", cluster: "two-shards" });
  expect(placeOf(divided)).toBe("clickhouse://default@host:8123/x?cluster=two-shards");
});

it.each([
  "clickhouse://",
  "clickhouse://host/a-b",
  "clickhouse://host/x;DROP",
  "clickhouse://ada:secret@host:1x/a",
  "clickhouse://ada:secret@host/a?b=c",
  "clickhouse://ada:secret@host/a?cluster=",
  "clickhouse://ada:secret@host/a?cluster=x'y",
  "clickhouse://ada:secret@host/a?cluster=x&b=c",
  "clickhouse://ada:secret%zz@host/a",
  "clickhouse://ada:se/secret@host/db",
  "clickhouse://ada:x/secret/y@host/db",
  "clickhouse://ada:1/secret@host/db",
  "clickhouse://ada:x#secret@host/db",
  "clickhouse://ada:x?secret@host/db",
  "clickhouse://ada:a@b/secret@host/db",
  "clickhouse:/ada:secret@host/db",
  "ClickHouse:ada:secret@host/db",
  "http://ada:secret@host/db",
  "ada:secret@host/db",
  "clickhouse:///db",
  "clickhouse:////host/db",
  "clickhouse://host:0/db",
  "clickhouse://host:99999/db",
  "clickhouse://host/db/more",
  "clickhouse://host//",
])("refuses %s in one line without the password", async (name) => {
  expect(() => clickhouseAddress(name)).toThrow(/^TM-E\d+ (?!.*(secret|\n))/);
  await expect(openStore(name)).rejects.toThrow(/^TM-E\d+ (?!.*(secret|\n))/);
});

it("names the characters of a password that must be percent-encoded", () => {
  expect(() => clickhouseAddress("clickhouse://ada:se/cret@host/db")).toThrow(
    /address of ClickHouse: clickhouse:\/\/\.\.\.@host\/db; .*\/ @ : \? # percent-encoded/,
  );
  expect(() => clickhouseAddress("clickhouse://ada/cret@host")).toThrow(/%40/);
});

it("has new versions compare rows within a partition, and sends old ones no setting that they lack", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(String(new URL(request.url ?? "", "http://localhost").search));
    request.resume();
    response.end("");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  try {
    const connection = new ClickhouseConnection(
      clickhouseAddress(`clickhouse://127.0.0.1:${port}/x`),
    );
    await connection.rows("SELECT 1");
    connection.isModern = true;
    await connection.rows("SELECT 1");
    await connection.until(new AbortController().signal).rows("SELECT 1");
  } finally {
    server.close();
  }
  const isSet = asked.map((search) =>
    search.includes("do_not_merge_across_partitions_select_final=1"),
  );
  expect(isSet).toEqual([false, true, true]);
});

it("knows old and new versions", () => {
  expect(dialectOf("1.1.54390")).toBeNull();
  expect(dialectOf("18.14.19")).toBeNull();
  expect(dialectOf("")).toBeNull();
  expect(dialectOf("18.16.1")).toEqual({ isModern: false });
  expect(dialectOf("26.9.2.1")).toEqual({ isModern: true });
  const place = { database: "fleet", cluster: null };
  expect(createStatements(place, "samples", { isModern: false })).toEqual([
    expect.not.stringMatching(/CODEC|SETTINGS/),
  ]);
  expect(createStatements(place, "samples", { isModern: true })).toEqual([
    expect.stringMatching(/CODEC.*SETTINGS fsync_after_insert/s),
  ]);
});

interface Patience {
  readonly silenceMs: number;
  readonly longestMs: number;
}
const LITTLE: Patience = { silenceMs: 400, longestMs: 1_500 };
/** More than this process, which is also the server, may pause on a busy machine. */
const MORE: Patience = { silenceMs: 2_000, longestMs: 20_000 };

/** What a connection that waits so long for a byte, and for a statement, makes of a server's answer. */
async function outcomeOf(
  answering: RequestListener,
  { stop, patience = LITTLE }: { stop?: AbortSignal; patience?: Patience } = {},
): Promise<unknown> {
  const server = createServer(answering);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const own = {
    ...{ host: "127.0.0.1", port, user: "ada", password: "secret", database: "fleet" },
    cluster: null,
  };
  const connection = new ClickhouseConnection(own, patience);
  const used = stop === undefined ? connection : connection.until(stop);
  const outcome = await used.rows("SELECT 1").catch((error: Error) => error.message);
  connection.close();
  server.closeAllConnections();
  server.close();
  return outcome;
}

it("waits for an answer as long as bytes come", async () => {
  const outcome = await outcomeOf(
    async (_asked, answer) => {
      for (let n = 0; n < 9; n++) {
        answer.write('{"a":1}\n');
        await wait(MORE.silenceMs / 8);
      }
      answer.end();
    },
    { patience: MORE },
  );
  expect(outcome).toHaveLength(9);
});

it("says whether no answer came, it was cut, or its reader stopped", async () => {
  const silent = /no answer within 0.4 s; check that ClickHouse is not overloaded/;
  const cut = /the connection was cut; see in ClickHouse's own log/;
  expect(await outcomeOf(() => {})).toMatch(silent);
  expect(await outcomeOf((_asked, answer) => answer.write("{"))).toMatch(silent);
  expect(await outcomeOf((asked) => asked.socket.destroy())).toMatch(cut);
  const begun: RequestListener = (asked, answer) => {
    answer.write("{", () => asked.socket.destroy());
  };
  expect(await outcomeOf(begun)).toMatch(cut);
  const stop = new AbortController();
  const stopping: RequestListener = () => stop.abort();
  expect(await outcomeOf(stopping, { stop: stop.signal })).toMatch(/the request was stopped/);
  expect(await outcomeOf(stopping, { stop: stop.signal })).toMatch(/the request was stopped/);
});

/** A ClickHouse that answers after some time, and lists the statement until then. */
function computing(forMs: number, killed: string[] = []): RequestListener {
  const running: string[] = [];
  return async (asked, answer) => {
    let body = "";
    for await (const part of asked) {
      body += String(part);
    }
    const id = new URL(asked.url ?? "", "http://any").searchParams.get("query_id") ?? "";
    if (/^SELECT query_id FROM system.processes/.test(body)) {
      answer.end(running.find((each) => body.includes(`'${each}'`)) ?? "");
    } else if (/^KILL QUERY/.test(body)) {
      killed.push(running.find((each) => body.includes(`'${each}'`)) ?? "");
      answer.end();
    } else {
      running.push(id);
      await wait(forMs);
      running.splice(running.indexOf(id), 1);
      answer.end('{"a":1}\n');
    }
  };
}

it("waits for a statement that ClickHouse computes, however long without a byte, but not for one that hangs", async () => {
  expect(await outcomeOf(computing(2 * MORE.silenceMs), { patience: MORE })).toEqual([{ a: 1 }]);
  const killed: string[] = [];
  expect(await outcomeOf(computing(4000, killed))).toMatch(
    /a statement took longer than 1.5 s; see in ClickHouse's system.query_log/,
  );
  expect(killed).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  // It lost the statement, but not the connection.
  const losing: RequestListener = (asked, answer) => {
    if (!(asked.url ?? "").includes("query=")) {
      answer.end("");
    }
  };
  expect(await outcomeOf(losing)).toMatch(/no answer within 0.4 s/);
});
