/**
 * `npm run dev`: serves the report's page with a sample recording on loopback while you work. A change in
 * web/ or src/model is shown at once; a change in src/ or web/ also rebuilds dist/ and rewrites the report's
 * document. Ctrl-C ends everything. `npm run dev -- RECORDING` shows another recording.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { runAsScript, SetupError } from "./command.mjs";
import { root } from "./setup.mjs";

const folder = join(root, "dist/dev");
const sample = join(folder, "sample.tidemark");
const report = join(folder, "report.html");
/** Delay before a rebuild, because one save in an editor may change several files. */
const SETTLED_MS = 200;
const watched = ["src", "web/src", "web/index.html"];

/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();

/**
 * Runs one command with its output on this terminal; never throws if the command fails.
 * @param {string} file @param {string[]} args @returns {Promise<boolean>} it succeeded
 */
function run(file, args) {
  return new Promise((resolve) => {
    // In its own process group, so that the command's children end with it.
    const child = spawn(file, args, {
      ...{ cwd: root, detached: true },
      stdio: ["ignore", "inherit", "inherit"],
    });
    running.add(child);
    const ended = (/** @type {boolean} */ succeeded) => {
      running.delete(child);
      resolve(succeeded);
    };
    child.on("error", () => ended(false));
    child.on("close", (code) => ended(code === 0));
  });
}

const build = () => run(process.execPath, [join(root, "scripts/build.mjs")]);

/** @param {string[]} args */
const tidemark = (...args) => run(join(root, "bin/tidemark"), args);

/** @param {string} recording */
async function writeReport(recording) {
  rmSync(report, { force: true });
  return await tidemark("report", recording, "-o", report);
}

async function recordSample() {
  mkdirSync(folder, { recursive: true });
  const service = ["python3", "examples/inference_service", "--seconds", "15"];
  if (await tidemark("run", "--force", "-o", sample, "--", ...service)) {
    return;
  }
  rmSync(sample, { force: true });
  throw new SetupError("the sample recording could not be made");
}

/**
 * Puts the report's document into the page that vite serves, and removes the content security policy, which
 * forbids the page to load vite's modules.
 * @returns {import("vite").Plugin}
 */
function documentPlugin() {
  return {
    name: "tidemark-dev-document",
    transformIndexHtml(html) {
      const [document = ""] =
        (existsSync(report) ? readFileSync(report, "utf8") : "").match(
          /<script[^>]*id="tidemark-document"[^>]*>[^<]*<\/script>/,
        ) ?? [];
      return html
        .replace(/<meta\s+http-equiv="Content-Security-Policy"[^>]*>/, "")
        .replace("<!--tidemark:document-->", () => document);
    },
  };
}

async function serve() {
  const { createServer } = await import("vite");
  const server = await createServer({
    root: join(root, "web"),
    configFile: join(root, "web/vite.config.ts"),
    logLevel: "info",
    cacheDir: join(folder, "vite"),
    clearScreen: false,
    plugins: [documentPlugin()],
    server: {
      host: "127.0.0.1",
      // node_modules may be a symbolic link.
      fs: { allow: [root, realpathSync(join(root, "node_modules"))] },
    },
  });
  await server.listen();
  server.printUrls();
  return server;
}

/**
 * Rebuilds after changes, one build at a time; the last change is never missed.
 * @param {import("vite").ViteDevServer} server
 * @param {string} recording
 */
function rebuildOnChange(server, recording) {
  let changed = false;
  let building = false;
  const rebuild = async () => {
    if (building || !changed) {
      return;
    }
    building = true;
    changed = false;
    if ((await build()) && (await writeReport(recording))) {
      server.ws.send({ type: "full-reload" });
    }
    building = false;
    await rebuild();
  };
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  server.watcher.add(watched.map((path) => join(root, path)));
  server.watcher.on("all", (_event, path) => {
    const name = relative(root, path);
    if (!watched.some((part) => name === part || name.startsWith(`${part}/`))) {
      return;
    }
    if (/\.test\.tsx?$/.test(name)) {
      return;
    }
    changed = true;
    clearTimeout(timer);
    timer = setTimeout(rebuild, SETTLED_MS);
  });
}

/** @param {string[]} words */
async function dev([recording = sample]) {
  /** @type {import("vite").ViteDevServer | undefined} */
  let server;
  let stopping = false;
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.on(signal, async () => {
      if (stopping) {
        return;
      }
      stopping = true;
      for (const { pid } of running) {
        if (pid !== undefined) {
          process.kill(-pid, "SIGTERM");
        }
      }
      await server?.close();
      process.exit(0);
    });
  }
  if (!(await build())) {
    throw new SetupError("the build failed");
  }
  if (recording === sample && !existsSync(sample)) {
    await recordSample();
  }
  if (!(await writeReport(recording))) {
    throw new SetupError(`no report of ${recording}`);
  }
  server = await serve();
  rebuildOnChange(server, recording);
}

await runAsScript(import.meta, () => dev(process.argv.slice(2)));
