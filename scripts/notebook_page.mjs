/** Runs a notebook with Tidemark's magics in a real kernel and renders it as a page, for a picture in the docs. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { SetupError } from "./command.mjs";
import { readEnvironment } from "./environment.mjs";
import { root } from "./setup.mjs";

const CELLS = [
  "%load_ext tidemark\nimport numpy as np, pandas as pd",
  `%%tidemark
orders = pd.DataFrame({"shop": np.arange(2_000_000) % 500, "price": np.random.rand(2_000_000)})
by_price = orders.sort_values("price")
by_shop = by_price.groupby("shop").price.sum()
texts = by_price.price.head(200_000).map("{:.2f}".format)
del by_price
len(by_shop)`,
  'def train():\n    batch = np.ones((512, 1024, 16))\n    raise ValueError("loss is NaN")\ntrain()',
  "%tidemark_leaks",
];

/** @param {string} folder where the page goes @returns {string} path of the page */
export function notebookPage(folder) {
  const { packagesPython } = readEnvironment();
  if (packagesPython === null) {
    throw new SetupError("the picture of a notebook needs the tests' packages");
  }
  const { stdout, status, stderr } = spawnSync(
    packagesPython,
    [join(root, "test/real/run_notebook.py")],
    {
      input: JSON.stringify(CELLS),
      encoding: "utf8",
      env: { ...process.env, PYTHONPATH: join(root, "python"), IPYTHONDIR: folder },
    },
  );
  if (status !== 0) {
    throw new SetupError(`the notebook failed: ${stderr}`);
  }
  const cells = JSON.parse(stdout).map(
    (/** @type {{outputs: Output[]}} */ { outputs }, /** @type {number} */ index) =>
      `<pre class="in">${escaped(CELLS[index] ?? "")}</pre>${outputs.map(shown).join("")}`,
  );
  const page = join(folder, "notebook.html");
  writeFileSync(
    page,
    `<!doctype html><meta charset="utf-8"><style>
body { font: 14px system-ui, sans-serif; margin: 20px; background: white; color: #14222b }
pre { font: 13px ui-monospace, monospace; margin: 4px 0 8px; white-space: pre-wrap }
.in { background: #f3f5f5; border: 1px solid #dbe2e4; border-radius: 3px; padding: 8px }
.error { color: #b3261e }</style>${cells.join("")}`,
  );
  return page;
}

/** @typedef {{data?: Record<string, string>, text?: string, ename?: string, evalue?: string}} Output */
/** @param {Output} output */
function shown({ data, text, ename, evalue }) {
  if (ename !== undefined) {
    return `<pre class="error">${escaped(`${ename}: ${evalue}`)}</pre>`;
  }
  return data?.["text/html"] ?? `<pre>${escaped(text ?? data?.["text/plain"] ?? "")}</pre>`;
}

/** @param {string} text */
function escaped(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
}
