/** Sources that are made from other sources are up to date: making them again would change nothing. */
import { generate } from "../generate.mjs";
import { stream, sum, verdicts } from "./stream.mjs";

export async function checkGenerated() {
  const parts = await generate({ write: false });
  for (const { path } of parts.filter(({ changed }) => changed)) {
    process.stdout.write(`  ${path} is not what its source says; mend it: npm run generate\n`);
  }
  return sum([verdicts(parts.map(({ changed }) => !changed)), await checkLayouts()]);
}

/** CPython's offset tables against the headers of the interpreters that are here. */
async function checkLayouts() {
  const { status, lines } = await stream("python3", ["agent/layouts/generate.py", "--check"]);
  const results = lines
    .filter((line) => /^(not )?ok /.test(line))
    .map((line) => line.startsWith("ok"));
  if (results.length === 0 && status === 0) {
    return { ...verdicts([]), skipped: 1, reasons: ["CPython's offset tables: no headers here"] };
  }
  return verdicts(results.every(Boolean) && status !== 0 ? [...results, false] : results);
}
