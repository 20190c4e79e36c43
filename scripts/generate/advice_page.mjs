// docs/advice.md from the catalogues of the built program (src/diagnose/wording/advice.ts, src/gpu/analysis/advice.ts).

/** @returns {Promise<Map<string, string>>} path in the repository -> text */
export async function advicePage() {
  const { ADVICE } = await import("../../dist/diagnose/wording/advice.js");
  const { adviceOf, GPU_ADVICE } = await import("../../dist/gpu/analysis/advice.js");
  const devices = adviceOf(/** @type {(keyof typeof GPU_ADVICE)[]} */ (Object.keys(GPU_ADVICE)));
  return new Map([["docs/advice.md", `${pageOf(ADVICE)}${devicesOf(devices)}`]]);
}

/** @param {readonly Parameters<typeof section>[0][]} catalogue */
function pageOf(catalogue) {
  return `# Advice

Look up the advice of \`tidemark diagnose\` by its id here: when it applies, and a before and after. The ids are stable.
[diagnosis.md](diagnosis.md) explains the kinds of verdict. \`npm run generate\` makes this page from
src/diagnose/wording/advice.ts.
${catalogue.map(section).join("")}`;
}

/** @param {readonly {id: string, text: string}[]} advice */
function devicesOf(advice) {
  const rows = advice.map(({ id, text }) => `| ${id} | ${text.replaceAll("|", "\\|")} |\n`);
  return `
# Device memory

This is the advice of \`tidemark gpu\` and \`diagnose\` for GPUs, from src/gpu/analysis/advice.ts. [gpu.md](gpu.md)
explains when each piece applies.

| id | advice |
|---|---|
${rows.join("")}`;
}

/** @param {{id: string, text: string, when: string, kinds: readonly string[], before: string, after: string}} advice */
function section({ id, text, when, kinds, before, after }) {
  const marked = (/** @type {string} */ mark, /** @type {string} */ code) =>
    code
      .split("\n")
      .map((line) => `${mark} ${line}`)
      .join("\n");
  return `
## ${id}
${text}

When: ${when}${kinds.length === 0 ? "" : ` (${kinds.map((kind) => `\`${kind}\``).join(", ")})`}

\`\`\`diff
${marked("-", before)}
${marked("+", after)}
\`\`\`
`;
}
