/** `tidemark memcheck` with a Valgrind whose output is damaged, hostile, or of another version. */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { MemcheckJson } from "../src/model/documents/memcheck_document.js";
import { expectSpeaksClearly } from "./behaviour.js";
import { python, validate } from "./recorded_app.js";
import { execute, removeScratch, scratch, tidemark } from "./run.js";

afterAll(removeScratch);

const folder = scratch();
const cache = scratch();
/** Writes the file that HOSTILE names where the XML of a process belongs, and starts no program. */
const VALGRIND = `#!/bin/sh
[ "$1" = --version ] && { echo valgrind-3.99.0; exit 0; }
for word; do case $word in --xml-file=*) path=\${word#--xml-file=};; esac; done
cat "$HOSTILE" > "\${path%\\%p.xml}$$.xml"
`;
mkdirSync(join(folder, "bin"));
writeFileSync(join(folder, "bin/valgrind"), VALGRIND);
chmodSync(join(folder, "bin/valgrind"), 0o755);

const frame = (name: string) =>
  `<frame><ip>0x1</ip><obj>/x/faulty.so</obj><fn>${name}</fn><dir>/x</dir><file>f.c</file><line>7</line></frame>`;
const error = (name: string, unique = "0x1") =>
  `<error><unique>${unique}</unique><tid>1</tid><kind>InvalidWrite</kind><what>Invalid write of size 1</what>` +
  `<stack>${frame(name)}</stack><auxwhat>Address 0x5 is 0 bytes after a block of size 16 alloc'd</auxwhat>` +
  `<stack>${frame("begin")}</stack></error>`;
const output = (body: string, protocol = "4") =>
  `<?xml version="1.0"?>\n<valgrindoutput><protocolversion>${protocol}</protocolversion><pid>42</pid>${body}</valgrindoutput>`;

async function check(xml: string | Buffer) {
  const [hostile, json] = [join(folder, "hostile.xml"), join(folder, "found.json")];
  writeFileSync(hostile, xml);
  const words = ["memcheck", "--force", "--json", json, "--", python, "-c", "pass"];
  const outcome = await execute([tidemark, ...words], {
    cwd: folder,
    env: {
      PATH: `${folder}/bin:${process.env.PATH}`,
      HOSTILE: hostile,
      XDG_CACHE_HOME: cache,
    },
  });
  expectSpeaksClearly(outcome.stderr);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
  expect(outcome.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  const read = () => validate(readFileSync(json, "utf8"), "memcheck") as unknown as MemcheckJson;
  return { outcome, read };
}

test.each([
  ["garbage", Buffer.from([0, 1, 2, 255, 60, 60, 62, 10, 0x1b, 0x5b])],
  ["another document", "<html><body>x</body></html>"],
  [
    "entities that grow",
    '<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><valgrindoutput>&b;</valgrindoutput>',
  ],
  ["deep nesting", `<valgrindoutput>${"<a>".repeat(100_000)}`],
])("reports %s as an incomplete report", async (_, xml) => {
  const { outcome, read } = await check(xml);
  expect(outcome.status).toBe(0);
  expect(read()).toMatchObject({ errors: [], leaks: [], leaksKnown: false });
  expect(outcome.stderr).toMatch(/The report of process \d+ is incomplete: /);
});

test("keeps the errors before the place where a report breaks off", async () => {
  const { outcome, read } = await check(
    output(error("first") + error("second", "0x2")).slice(0, -90),
  );
  expect(outcome.status).toBe(1);
  expect(read().errors).toMatchObject([{ stack: [{ function: "first" }] }]);
  expect(outcome.stderr).toMatch(
    /it ends in the middle, because the process was\s+killed or\s+crashed/,
  );
});

test.each(["3", "7", "1e99", "-4", "", "x"])(
  "refuses protocol '%s' with one line",
  async (protocol) => {
    const { outcome } = await check(output(error("use"), protocol));
    expect(outcome.status).not.toBe(0);
    const last = outcome.stderr.trimEnd().split("\n").at(-1);
    expect(last).toMatch(
      /^tidemark: TM-E091 Valgrind wrote XML of protocol \S+, this Tidemark reads 4 to 6/,
    );
  },
);

test("prints no escape sequence of a name, and wraps no line of ours into it", async () => {
  // The only control characters that XML 1.0 allows: C1, where U+009B begins a sequence, and U+007F.
  const { outcome, read } = await check(output(error("\u009b31mred\u007f\nTM-E002 &lt;b&gt;")));
  expect(outcome.status).toBe(1);
  expect(read().errors).toHaveLength(1);
  expect(outcome.stderr).not.toMatch(/^TM-E002/m);
});

test("reads a report whose file names have control characters, which XML forbids", async () => {
  const { outcome, read } = await check(output(error("use").replace("f.c", "\u001b[31m\u0007.c")));
  expect(outcome.status).toBe(1);
  expect(read()).toMatchObject({ errors: [{ kind: "InvalidWrite" }], leaksKnown: true });
});

test("reads a report of 60 MiB with 100,000 equal errors", async () => {
  const many = Array.from({ length: 100_000 }, (_, index) => error("use", `0x${index}`)).join("");
  const { outcome, read } = await check(output(many));
  expect(outcome.status, outcome.stderr).toBe(1);
  expect(read().errors).toMatchObject([{ count: 100_000 }]);
});
