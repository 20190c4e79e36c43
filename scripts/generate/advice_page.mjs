// docs/advice.md from the catalogue of the built program (src/diagnose/advice.ts).

/** @returns {Promise<Map<string, string>>} path in the repository -> text */
export async function advicePage() {
  const { ADVICE } = await import("../../dist/diagnose/advice.js");
  return new Map([["docs/advice.md", pageOf(ADVICE)]]);
}

/** @param {readonly Parameters<typeof section>[0][]} catalogue */
function pageOf(catalogue) {
  return `# Advice

Made by \`npm run generate\` from src/diagnose/advice.ts. What \`tidemark diagnose\` tells to do; the ids are
stable. The kinds of verdict are explained in [diagnosis.md](diagnosis.md).
${catalogue.map(section).join("")}`;
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

When: ${when} (${kinds.map((kind) => `\`${kind}\``).join(", ")})

\`\`\`diff
${marked("-", before)}
${marked("+", after)}
\`\`\`
`;
}
