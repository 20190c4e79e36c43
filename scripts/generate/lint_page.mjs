// docs/lint_rules.md from the rules of the built program (src/lint/rules/).

/** @typedef {import("../../dist/lint/rules/rule.js").Rule} Rule */

/** @returns {Promise<Map<string, string>>} path in the repository -> text */
export async function lintPage() {
  const { RULES } = await import("../../dist/lint/rules/index.js");
  return new Map([["docs/lint_rules.md", pageOf(RULES)]]);
}

/** @param {readonly Rule[]} rules */
function pageOf(rules) {
  return `# Rules of \`tidemark lint\`

Look up a rule of \`tidemark lint\` by its id here: why memory grows, how fast, how to fix it, and when to ignore the
finding. [lint.md](lint.md) describes the command. The code of each section is a test of the rule: it reports the first
block, and nothing in the second. \`npm run generate\` makes this page from src/lint/rules/.

| rule | name | severity |
|---|---|---|
${rules.map(({ id, name, severity }) => `| [${id}](#${id.toLowerCase()}) | ${name} | ${severity} |\n`).join("")}
${rules.map(section).join("\n")}`;
}

/** @param {Rule} rule */
function section({ id, name, severity, finds, why, speed, before, after, ignore, proof }) {
  return `## ${id}

**${name}**, ${severity}. ${finds}

- **Why it leaks**: ${why}
- **How fast**: ${speed}
- **When to ignore it**: ${ignore} Then write \`# tidemark: ignore[${id}] reason\` at the end of the line.
- **Proof at run time**: ${proof}

Reported:

\`\`\`python
${before.trim()}
\`\`\`

Not reported:

\`\`\`python
${after.trim()}
\`\`\`
`;
}
