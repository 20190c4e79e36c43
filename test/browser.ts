/**
 * The only place that decides which browser the tests and screenshots run: the machine's own Chromium or
 * Chrome if there is one, else the one in the npm package @sparticuz/chromium.
 */
import { execFileSync, spawnSync } from "node:child_process";
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";
import { type Browser, chromium } from "playwright-core";

const SYSTEM_NAMES = [
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
  "chrome",
];
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** How long a page may take for anything: as long as a poll (vitest.config.ts), for a first page on a busy machine. */
const PATIENCE_MS = 100_000;

interface Executable {
  readonly path: string;
  /** Added to the browser's environment. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Starts a headless browser; the caller closes it. */
export async function launchBrowser(): Promise<Browser> {
  const executable = systemBrowser() ?? (await packagedBrowser());
  const browser = await chromium.launch({
    executablePath: executable.path,
    headless: true,
    args: FLAGS,
    env: { ...(process.env as Record<string, string>), ...executable.environment },
  });
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(PATIENCE_MS);
    return context;
  };
  return browser;
}

function systemBrowser(): Executable | undefined {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of SYSTEM_NAMES) {
      const path = join(folder, name);
      // Some distributions install a stub that only prints how to get the real one.
      if (folder && existsSync(path) && spawnSync(path, ["--version"]).status === 0) {
        return { path, environment: {} };
      }
    }
  }
  return undefined;
}

/** Unpacks the package's binary once into the user's cache (never into the clone), through a private folder, so that
 * tests that start at the same time cannot find a half-written file. */
async function packagedBrowser(): Promise<Executable> {
  const packed = join(
    dirname(createRequire(import.meta.url).resolve("@sparticuz/chromium")),
    "../../bin",
  );
  const { version } = createRequire(import.meta.url)(join(packed, "../package.json")) as {
    version: string;
  };
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "tidemark");
  const home = join(cache, `chromium-${version}`);
  if (!existsSync(home)) {
    mkdirSync(cache, { recursive: true });
    const draft = mkdtempSync(`${home}.`);
    await unbrotli(join(packed, "chromium.br"), join(draft, "chromium"), 0o755);
    for (const name of ["fonts", "al2023"]) {
      await unbrotli(join(packed, `${name}.tar.br`), join(draft, `${name}.tar`), 0o644);
      mkdirSync(join(draft, name));
      execFileSync("tar", ["-xf", join(draft, `${name}.tar`), "-C", join(draft, name)]);
      rmSync(join(draft, `${name}.tar`));
    }
    // The package's own fonts.conf names only folders of the service that it was made for.
    writeFileSync(
      join(draft, "fonts/fonts.conf"),
      '<fontconfig><dir prefix="relative">fonts</dir></fontconfig>\n',
    );
    try {
      renameSync(draft, home);
    } catch {
      rmSync(draft, { recursive: true }); // another test was quicker
    }
  }
  const path = join(home, "chromium");
  const missesLibraries = /not found/.test(spawnSync("ldd", [path], { encoding: "utf8" }).stdout);
  const missesFonts =
    spawnSync("fc-list", { encoding: "utf8" }).stdout?.trim() === "" || !existsSync("/etc/fonts");
  return {
    path,
    environment: {
      ...(missesLibraries ? { LD_LIBRARY_PATH: join(home, "al2023/lib") } : {}),
      ...(missesFonts ? { FONTCONFIG_PATH: join(home, "fonts") } : {}),
    },
  };
}

async function unbrotli(from: string, to: string, mode: number): Promise<void> {
  await pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to, { mode }));
}
