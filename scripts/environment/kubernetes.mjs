/**
 * Helm and a Kubernetes API server, built from their Go modules; etcd of Debian. The API server takes several minutes
 * to build, so it is made only for `npm run test:long` or with TIDEMARK_TEST_KUBERNETES=1.
 */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { capture, findOnPath, SetupError, step } from "../command.mjs";
import { cached } from "./cache.mjs";

const helmVersion = "v3.22.0";
const kubernetesVersion = "v1.34.3";
const small = ["-trimpath", "-ldflags=-s -w"];

/**
 * @returns {Promise<string>} path of the program
 * @throws {Error} why it is unavailable
 */
export async function makeHelm() {
  const go = requireProgram("go");
  const made = await cached("helm", [helmVersion], async (folder) => {
    const env = { ...process.env, GOBIN: folder, CGO_ENABLED: "0" };
    const words = ["install", ...small, `helm.sh/helm/v3/cmd/helm@${helmVersion}`];
    await step(`Helm ${helmVersion}`, go, words, { env });
  });
  return join(made, "helm");
}

/**
 * @param {boolean} long for `npm run test:long`
 * @returns {Promise<string>} folder of the programs `kube-apiserver` and `etcd`
 * @throws {Error} why it is unavailable
 */
export async function makeApiServer(long) {
  if (!long && process.env.TIDEMARK_TEST_KUBERNETES !== "1") {
    throw new SetupError(
      "several minutes to build, only for npm run test:long or with TIDEMARK_TEST_KUBERNETES=1",
    );
  }
  const go = requireProgram("go");
  const [apt, dpkg] = [requireProgram("apt-get"), requireProgram("dpkg")];
  return await cached("kubernetes", [kubernetesVersion], async (folder) => {
    await buildApiServer(go, folder);
    const place = join(folder, "debian");
    mkdirSync(place);
    // Unpacked and not installed, because the package would start a service.
    await step("apt-get download etcd-server", apt, ["download", "-q", "etcd-server"], {
      cwd: place,
    });
    const [file = ""] = readdirSync(place);
    await step("etcd", dpkg, ["-x", file, "."], { cwd: place });
    symlinkSync("debian/usr/bin/etcd", join(folder, "etcd"));
  });
}

/**
 * Kubernetes names the modules of its own repository as v0.0.0, so a module that builds its API server has to say which
 * versions these are: v1.34.3 belongs to v0.34.3.
 * @param {string} go @param {string} folder
 */
async function buildApiServer(go, folder) {
  const source = join(folder, "source");
  mkdirSync(source);
  const words = ["mod", "download", "-json", `k8s.io/kubernetes@${kubernetesVersion}`];
  const { status, output } = await capture(go, words, { cwd: folder });
  if (status !== 0) {
    throw new SetupError(`k8s.io/kubernetes is unavailable: ${output.trim().split("\n")[0]}`);
  }
  const { GoMod } = JSON.parse(output.slice(output.indexOf("{")));
  const staging = [...readFileSync(GoMod, "utf8").matchAll(/^\s*(k8s\.io\/\S+) => \.\/staging/gm)];
  const version = kubernetesVersion.replace("v1.", "v0.");
  writeFileSync(
    join(source, "go.mod"),
    [
      "module apiserver",
      "go 1.24.0",
      `require k8s.io/kubernetes ${kubernetesVersion}`,
      ...staging.map(([, name]) => `replace ${name} => ${name} ${version}`),
    ].join("\n\n"),
  );
  writeFileSync(
    join(source, "main.go"),
    `package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
`,
  );
  const name = "k8s.io/component-base/version";
  const [major = "", minor = ""] = kubernetesVersion.slice(1).split(".");
  const linked = `-ldflags=-s -w -X ${name}.gitVersion=${kubernetesVersion} -X ${name}.gitMajor=${major} -X ${name}.gitMinor=${minor}`;
  const env = { ...process.env, CGO_ENABLED: "0" };
  await step(`modules of Kubernetes ${kubernetesVersion}`, go, ["mod", "tidy"], {
    cwd: source,
    env,
  });
  await step(
    `kube-apiserver ${kubernetesVersion}`,
    go,
    ["build", "-trimpath", linked, "-o", join(folder, "kube-apiserver"), "."],
    { cwd: source, env },
  );
}

/** @param {string} name */
function requireProgram(name) {
  const path = findOnPath(name);
  if (path === undefined) {
    throw new SetupError(`needs ${name}`);
  }
  return path;
}
