/**
 * Debian forky in a folder of the user's cache: the CPython versions that are newer than a machine's
 * own. Made once by debootstrap, shared by everything that tests against those interpreters.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { capture, findOnPath, SetupError } from "../command.mjs";
import { cacheFolder } from "./cache.mjs";

const packages = ["python3.13", "python3.14", "python3.15"];
const aptFolder = "/etc/apt";

/**
 * @returns {Promise<string>} the root folder, ready for chroot(8)
 * @throws {SetupError} not root, no mirror, no debootstrap, or it failed
 */
export async function makeChroot() {
  if (process.getuid?.() !== 0) throw new SetupError("chroot needs root");
  const folder = join(cacheFolder(), "chroot-forky");
  if (packages.some((name) => existsSync(join(folder, "usr/bin", name)))) return folder;
  mkdirSync(cacheFolder(), { recursive: true });
  const mirror = ownMirror();
  const debootstrap = installedDebootstrap() ?? (await fetchedDebootstrap());
  process.stderr.write(`making ${folder}: Debian forky with ${packages.join(", ")} (a minute)\n`);
  // Under another name until it is whole: a broken-off one is never taken for the real one.
  const making = `${folder}.${process.pid}`;
  try {
    await bootstrap(debootstrap, making, mirror);
    rmSync(folder, { recursive: true, force: true });
    renameSync(making, folder);
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
  return folder;
}

/**
 * @param {{program: string, share: string}} debootstrap @param {string} folder @param {string} mirror
 */
async function bootstrap(debootstrap, folder, mirror) {
  // A release drops an old version, or has not taken a new one yet: then without that package.
  let wanted = packages;
  while (true) {
    rmSync(folder, { recursive: true, force: true });
    const options = ["--no-check-gpg", "--variant=minbase", `--include=${wanted.join(",")}`];
    const { status, output } = await capture(
      debootstrap.program,
      [...options, "forky", folder, mirror, join(debootstrap.share, "scripts/sid")],
      { env: { ...process.env, DEBOOTSTRAP_DIR: debootstrap.share } },
    );
    if (status === 0) return;
    const unknown = /Couldn't find these debs:(.*)/.exec(output)?.[1]?.trim().split(/\s+/) ?? [];
    const left = wanted.filter((name) => !unknown.includes(name));
    if (left.length === 0 || left.length === wanted.length) {
      throw new SetupError(`debootstrap failed: ${output.trim().split("\n").at(-1)}`);
    }
    wanted = left;
  }
}

/** The archive that this machine's own packages come from. */
function ownMirror() {
  const parts = join(aptFolder, "sources.list.d");
  const files = [join(aptFolder, "sources.list")];
  if (existsSync(parts)) files.push(...readdirSync(parts).map((name) => join(parts, name)));
  const archive = /^(?:URIs:\s*|deb\s+(?:\[[^\]]*\]\s+)?)(https?:\/\/\S+\/debian\/?)(?:\s|$)/m;
  for (const file of files.filter((name) => existsSync(name))) {
    const found = archive.exec(readFileSync(file, "utf8"))?.[1];
    if (found !== undefined) return found;
  }
  throw new SetupError("no Debian archive in this machine's apt sources");
}

function installedDebootstrap() {
  const program = findOnPath("debootstrap");
  return program === undefined ? undefined : { program, share: "/usr/share/debootstrap" };
}

/** debootstrap is a shell script: unpacked into the cache it runs without being installed. */
async function fetchedDebootstrap() {
  const folder = join(cacheFolder(), "debootstrap");
  const program = join(folder, "usr/sbin/debootstrap");
  if (!existsSync(program)) {
    mkdirSync(folder, { recursive: true });
    const fetch =
      "rm -f *.deb; apt-get -qq download debootstrap && dpkg-deb -x debootstrap_*.deb . && rm *.deb";
    if ((await capture("sh", ["-c", fetch], { cwd: folder })).status !== 0) {
      throw new SetupError("no debootstrap (apt-get install debootstrap)");
    }
  }
  return { program, share: join(folder, "usr/share/debootstrap") };
}
