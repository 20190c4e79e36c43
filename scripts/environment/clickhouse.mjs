/** Unpacks Debian's ClickHouse server and ZooKeeper, and the libraries that this machine lacks, without installing them. */
import { chmodSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { capture, findOnPath, SetupError, step } from "../command.mjs";
import { cached } from "./cache.mjs";

/**
 * @returns {Promise<string>} absolute path of the root folder: usr/sbin/clickhouse-server and its libraries
 * @throws {Error} why it is unavailable
 */
export function makeClickhouse() {
  return unpacked("clickhouse", "clickhouse-server", "usr/sbin/clickhouse-server");
}

/**
 * @param {boolean} long
 * @returns {Promise<string>} absolute path of the root folder: usr/share/java/zookeeper.jar and its libraries
 * @throws {Error} why it is unavailable
 */
export async function makeZookeeper(long) {
  if (!long && process.env.TIDEMARK_TEST_CLUSTER !== "1") {
    throw new SetupError(
      "five servers, only for npm run test:long or with TIDEMARK_TEST_CLUSTER=1",
    );
  }
  if (findOnPath("java") === undefined) {
    throw new SetupError("needs java");
  }
  return unpacked("zookeeper", "zookeeper", "usr/share/java/zookeeper.jar");
}

/** @param {string} folder in the cache @param {string} name of the package @param {string} needed a file in it */
async function unpacked(folder, name, needed) {
  if (findOnPath("apt-get") === undefined || findOnPath("dpkg") === undefined) {
    throw new SetupError("needs apt-get and dpkg");
  }
  return cached(folder, [name], async (made) => {
    chmodSync(made, 0o755);
    await step("apt-get update", "apt-get", ["update", "-q"]);
    const { output: simulated } = await capture("apt-get", [
      ...["install", "--simulate", "--no-install-recommends", name],
    ]);
    const packages = Array.from(simulated.matchAll(/^Inst (\S+)/gm), ([, each = ""]) => each);
    const wanted = packages.length > 0 ? packages : [name];
    await step(`apt-get download ${name}`, "apt-get", ["download", "-q", ...wanted], { cwd: made });
    for (const file of readdirSync(made).filter((each) => each.endsWith(".deb"))) {
      await step(`dpkg -x ${file}`, "dpkg", ["-x", join(made, file), made]);
    }
    if (!existsSync(join(made, needed))) {
      throw new SetupError(`the package has no ${needed}`);
    }
  });
}
