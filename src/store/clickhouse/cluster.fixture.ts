/**
 * A real cluster for tests, on loopback: ZooKeeper, and two shards with two replicas each of Debian's ClickHouse.
 *
 *     shard 1: servers[0], servers[1]      shard 2: servers[2], servers[3]      all are asked by servers[0]
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { freePort } from "../../model/base/free_port.fixture.js";
import { ClickhouseServer, PASSWORD } from "./server.fixture.js";

const NAME = "fleet";
const USER = "tidemark";
const SHARDS = 2;
const REPLICAS = 2;
const LONGEST_START_MS = 60_000;

export class ClickhouseCluster {
  readonly servers: readonly ClickhouseServer[];
  readonly #zookeeper: ChildProcess;
  readonly #folder: string;

  private constructor(
    servers: readonly ClickhouseServer[],
    zookeeper: ChildProcess,
    folder: string,
  ) {
    this.servers = servers;
    this.#zookeeper = zookeeper;
    this.#folder = folder;
  }

  /** `zookeeper`, `clickhouse`: folders of scripts/environment/clickhouse.mjs. */
  static async start(zookeeper: string, clickhouse: string): Promise<ClickhouseCluster> {
    const folder = mkdtempSync(join(tmpdir(), "tidemark-zookeeper-"));
    const port = await freePort();
    const keeper = await startZookeeper(zookeeper, folder, port);
    const ports: number[] = [];
    for (let at = 0; at < SHARDS * REPLICAS; at++) {
      ports.push(await freePort());
    }
    const servers: ClickhouseServer[] = [];
    for (let at = 0; at < ports.length; at++) {
      const settings = clusterSettings(port, ports, at, await freePort());
      servers.push(await ClickhouseServer.start(clickhouse, settings, USER));
    }
    return new ClickhouseCluster(servers, keeper, folder);
  }

  get #first(): ClickhouseServer {
    return this.servers[0] as ClickhouseServer;
  }

  store(database: string): string {
    return `${this.#first.store(database)}?cluster=${NAME}`;
  }

  query(sql: string): Promise<string> {
    return this.#first.query(sql);
  }

  /** Deletes a database on all servers. */
  drop(database: string): Promise<string> {
    return this.query(`DROP DATABASE IF EXISTS ${database} ON CLUSTER ${NAME}`);
  }

  async stop(): Promise<void> {
    for (const server of this.servers) {
      await server.stop();
    }
    this.#zookeeper.kill("SIGKILL");
    await once(this.#zookeeper, "exit");
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function startZookeeper(root: string, folder: string, port: number): Promise<ChildProcess> {
  const jars = readdirSync(join(root, "usr/share/java")).filter((name) => name.endsWith(".jar"));
  const config = join(folder, "zoo.cfg");
  writeFileSync(
    config,
    `tickTime=2000\ndataDir=${folder}/data\nclientPort=${port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n`,
  );
  const classes = jars.map((name) => join(root, "usr/share/java", name)).join(":");
  const child = spawn(
    "java",
    ["-Xmx128m", "-cp", classes, "org.apache.zookeeper.server.ZooKeeperServerMain", config],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  child.stderr.on("data", (bytes) => {
    said = (said + String(bytes)).slice(-2000);
  });
  for (let left = LONGEST_START_MS; left > 0; left -= 100) {
    if (child.exitCode !== null) {
      throw new Error(`ZooKeeper ended: ${said}`);
    }
    if (await listens(port)) {
      return child;
    }
    await wait(100);
  }
  child.kill("SIGKILL");
  throw new Error(`ZooKeeper does not answer: ${said}`);
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: "127.0.0.1", port });
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

/** Of the server at this place in the list, which other servers reach at its own of these ports, and at `replication`. */
function clusterSettings(
  zookeeper: number,
  ports: readonly number[],
  at: number,
  replication: number,
): string {
  const shards = Array.from({ length: SHARDS }, (_, shard) => {
    const replicas = ports
      .slice(shard * REPLICAS, (shard + 1) * REPLICAS)
      .map(
        (port) =>
          `<replica><host>127.0.0.1</host><port>${port}</port><user>${USER}</user><password>${PASSWORD}</password></replica>`,
      );
    return `<shard><internal_replication>true</internal_replication>${replicas.join("")}</shard>`;
  });
  return `<tcp_port>${ports[at]}</tcp_port>
  <interserver_http_host>127.0.0.1</interserver_http_host>
  <interserver_http_port>${replication}</interserver_http_port>
  <zookeeper><node><host>127.0.0.1</host><port>${zookeeper}</port></node><session_timeout_ms>6000</session_timeout_ms></zookeeper>
  <distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
  <macros><shard>${Math.floor(at / REPLICAS) + 1}</shard><replica>${(at % REPLICAS) + 1}</replica></macros>
  <remote_servers><${NAME}>${shards.join("")}</${NAME}></remote_servers>`;
}
