/** A real ClickHouse server for tests, on loopback, with its data in a temporary folder. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "../../model/base/free_port.fixture.js";
import { present } from "../../model/base/present.js";

export const USER = "default";
/** Its characters have a meaning in addresses. */
export const PASSWORD = "s/e:c@ret";
export const READER = "reader";

/** The settings that we ship (deploy/clickhouse/), so that its own tables of logs stay small. */
const SHIPPED = new URL("../../../deploy/clickhouse/tidemark.xml", import.meta.url);

const config = (folder: string, port: number, cluster: string) => `<yandex>
  <logger><level>error</level><console>1</console></logger>
  <http_port>${port}</http_port>
  <listen_host>127.0.0.1</listen_host>
  <path>${folder}/data/</path>
  <tmp_path>${folder}/tmp/</tmp_path>
  <users_config>users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <mark_cache_size>33554432</mark_cache_size>
  <max_concurrent_queries>50</max_concurrent_queries>
  ${cluster}
</yandex>`;

/** Replicas of a cluster pass changes on as the user "default", without a password. */
const users = (user: string) => `<yandex>
  <profiles>
    <default><max_memory_usage>1000000000</max_memory_usage><max_threads>2</max_threads></default>
    <readonly><readonly>1</readonly></readonly>
  </profiles>
  <users>
    ${user === USER ? "" : `<${USER}><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></${USER}>`}
    <${user}>
      <password>${PASSWORD}</password><networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile><quota>default</quota>
    </${user}>
    <${READER}>
      <password></password><networks><ip>127.0.0.1</ip></networks>
      <profile>readonly</profile><quota>default</quota>
    </${READER}>
  </users>
  <quotas><default></default></quotas>
</yandex>`;

export class ClickhouseServer {
  readonly #root: string;
  readonly #folder: string;
  readonly port: number;
  readonly #user: string;
  #child: ChildProcess | null = null;

  private constructor(root: string, folder: string, port: number, user: string) {
    this.#user = user;
    this.#root = root;
    this.#folder = folder;
    this.port = port;
  }

  /** `root`: the folder with usr/sbin/clickhouse-server (scripts/environment/clickhouse.mjs). `cluster`: further settings. */
  static async start(root: string, cluster = "", user = USER): Promise<ClickhouseServer> {
    const folder = mkdtempSync(join(tmpdir(), "tidemark-clickhouse-"));
    const port = await freePort();
    mkdirSync(join(folder, "config.d"));
    writeFileSync(join(folder, "config.xml"), config(folder, port, cluster));
    writeFileSync(join(folder, "config.d", "tidemark.xml"), readFileSync(SHIPPED));
    writeFileSync(join(folder, "users.xml"), users(user));
    const server = new ClickhouseServer(root, folder, port, user);
    await server.begin();
    return server;
  }

  /** Starts it again after {@link kill}. */
  async begin(): Promise<void> {
    const libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
    this.#child = spawn(
      join(this.#root, "usr/sbin/clickhouse-server"),
      [`--config-file=${join(this.#folder, "config.xml")}`],
      {
        env: { LD_LIBRARY_PATH: libraries.map((name) => join(this.#root, name)).join(":") },
        stdio: ["ignore", "ignore", "pipe"],
        cwd: this.#folder,
      },
    );
    let said = "";
    this.#child.stderr?.on("data", (bytes) => {
      said += String(bytes);
    });
    const ended = once(this.#child, "exit").then(() => {
      throw new Error(`clickhouse-server ended: ${said.slice(0, 6000)}`);
    });
    ended.catch(() => {});
    await Promise.race([ended, this.#answers()]);
  }

  async #answers(): Promise<void> {
    for (;;) {
      const answer = await fetch(`http://127.0.0.1:${this.port}/ping`).catch(() => null);
      if (answer?.ok === true) {
        return;
      }
      await wait(50);
    }
  }

  /** For --store. */
  store(database: string, { user = this.#user, password = PASSWORD } = {}): string {
    return `clickhouse://${user}:${encodeURIComponent(password)}@127.0.0.1:${this.port}/${database}`;
  }

  query(sql: string): Promise<string> {
    return asked(this.port, sql, this.#user);
  }

  async kill(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    const child = this.#child;
    if (child !== null && child.exitCode === null && child.signalCode === null) {
      child.kill(signal);
      await once(child, "exit");
    }
  }

  /** Runs `work` while no thread of the server runs: it accepts connections and never answers. */
  async whileStopped(work: () => Promise<void>): Promise<void> {
    const child = present(this.#child);
    const pid = present(child.pid);
    child.kill("SIGSTOP");
    try {
      // The kernel stops threads one by one, and one that still runs could answer.
      while (readdirSync(`/proc/${pid}/task`).some((thread) => !isStopped(pid, thread))) {
        await wait(10);
      }
      await work();
    } finally {
      child.kill("SIGCONT");
    }
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** False also for one that has just ended. */
function isStopped(pid: number, thread: string): boolean {
  try {
    return /^State:\tT/m.test(readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** ClickHouse's newest engine in a process of Python (test/programs/chdb_server.py). */
export class ChdbServer {
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly #port: number;

  private constructor(folder: string, child: ChildProcess, port: number) {
    this.#folder = folder;
    this.#child = child;
    this.#port = port;
  }

  /** `python`: an interpreter with chdb. */
  static async start(python: string): Promise<ChdbServer> {
    const folder = mkdtempSync(join(tmpdir(), "tidemark-chdb-"));
    const program = fileURLToPath(
      new URL("../../../test/programs/chdb_server.py", import.meta.url),
    );
    const child = spawn(python, [program, folder], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(child, "exit").then(() => {
      throw new Error("chdb_server.py ended");
    });
    ended.catch(() => {});
    const [said] = await Promise.race([ended, once(child.stdout as Readable, "data")]);
    return new ChdbServer(folder, child, Number(String(said)));
  }

  store(database: string): string {
    return `clickhouse://127.0.0.1:${this.#port}/${database}`;
  }

  query(sql: string): Promise<string> {
    return asked(this.#port, sql);
  }

  async stop(): Promise<void> {
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function asked(port: number, sql: string, user = USER): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/`, {
    method: "POST",
    body: sql,
    headers: {
      authorization: `Basic ${Buffer.from(`${user}:${PASSWORD}`).toString("base64")}`,
    },
  });
  const text = await answer.text();
  if (!answer.ok) {
    throw new Error(text);
  }
  return text.trimEnd();
}
