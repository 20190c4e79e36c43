/**
 * Debian forky in a folder of the user's cache: the CPython versions that are newer than a machine's
 * own. Made once by debootstrap, shared by everything that tests against those interpreters.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { capture, findOnPath } from "../command.mjs";

const packages = ["python3.13", "python3.14", "python3.15"];
const aptFolder = "/etc/apt";

/**
 * @param {object} given
 * @param {string} given.cache folder that outlives the clone
 * @param {(line: string) => void} given.say
 * @returns {Promise<{folder: string | null, interpreters: string[], skips: {what: string, why: string}[]}>}
 *   interpreters: paths inside the folder ("/usr/bin/python3.14")
 */
export async function ensureForky({ cache, say }) {
  const folder = join(cache, "chroot-forky");
  const why =
    process.getuid?.() !== 0
      ? "chroot needs root"
      : interpretersOf(folder).length === 0
        ? await make(cache, folder, say)
        : null;
  if (why !== null) {
    return { folder: null, interpreters: [], skips: [{ what: "CPython of Debian forky", why }] };
  }
  return { folder, interpreters: interpretersOf(folder), skips: [] };
}

/** @param {string} folder */
function interpretersOf(folder) {
  return packages.map((name) => `/usr/bin/${name}`).filter((path) => existsSync(folder + path));
}

/**
 * @param {string} cache @param {string} folder @param {(line: string) => void} say
 * @returns {Promise<string | null>} null when made, else why not
 */
async function make(cache, folder, say) {
  mkdirSync(cache, { recursive: true });
  const mirror = ownMirror();
  if (mirror === undefined) return "no Debian archive in this machine's apt sources";
  const debootstrap = installedDebootstrap() ?? (await fetchedDebootstrap(cache));
  if (debootstrap === null) return "no debootstrap (apt-get install debootstrap)";
  say(`making ${folder}: Debian forky with ${packages.join(", ")} (a minute, 400 MB)`);
  // Under another name until it is whole: a broken-off one is never taken for the real one.
  const making = `${folder}.making`;
  // A release drops an old version, or has not taken a new one yet: then without that package.
  let wanted = packages;
  while (true) {
    rmSync(making, { recursive: true, force: true });
    const include = `--include=${wanted.join(",")}`;
    const { status, output } = await capture(
      debootstrap.program,
      [
        "--no-check-gpg",
        "--variant=minbase",
        include,
        "forky",
        making,
        mirror,
        join(debootstrap.share, "scripts/sid"),
      ],
      { env: { ...process.env, DEBOOTSTRAP_DIR: debootstrap.share } },
    );
    if (status === 0) break;
    const unknown = /Couldn't find these debs:(.*)/.exec(output)?.[1]?.trim().split(/\s+/) ?? [];
    const left = wanted.filter((name) => !unknown.includes(name));
    if (left.length === 0 || left.length === wanted.length) {
      rmSync(making, { recursive: true, force: true });
      return `debootstrap failed: ${output.trim().split("\n").at(-1)}`;
    }
    wanted = left;
  }
  rmSync(folder, { recursive: true, force: true });
  renameSync(making, folder);
  return null;
}

/** The archive that this machine's own packages come from. */
function ownMirror() {
  const parts = join(aptFolder, "sources.list.d");
  const files = [join(aptFolder, "sources.list")];
  if (existsSync(parts)) files.push(...readdirSync(parts).map((name) => join(parts, name)));
  const archive = /^(?:URIs:\s*|deb\s+(?:\[[^\]]*\]\s+)?)(https?:\/\/\S+\/debian\/?)(?:\s|$)/m;
  for (const file of files.filter((name) => existsSync(name))) {
    const found = archive.exec(readFileSync(file, "utf8"));
    if (found !== null) return found[1];
  }
  return undefined;
}

function installedDebootstrap() {
  const program = findOnPath("debootstrap") ;
  return program === undefined ? null : { program, share: "/usr/share/debootstrap" };
}

/**
 * debootstrap is a shell script: unpacked into the cache it runs without being installed.
 * @param {string} cache
 */
async function fetchedDebootstrap(cache) {
  const folder = join(cache, "debootstrap");
  const program = join(folder, "usr/sbin/debootstrap");
  if (!existsSync(program)) {
    mkdirSync(folder, { recursive: true });
    const fetch =
      "rm -f *.deb; apt-get -qq download debootstrap && dpkg-deb -x debootstrap_*.deb . && rm *.deb";
    if ((await capture("sh", ["-c", fetch], { cwd: folder })).status !== 0) return null;
  }
  return { program, share: join(folder, "usr/share/debootstrap") };
}
