/** Programs that fail at startup: their own message stays on the screen, and one line names the recording. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { anyInterpreter } from "../environment.js";
import { execute, removeScratch, scratch, tidemark } from "../run.js";

afterAll(removeScratch);

const folder = scratch();
writeFileSync(join(folder, "broken.py"), "x = (\n");
writeFileSync(join(folder, "short.py"), "kept = bytes(1 << 20)\n");
const run = (name: string, ...words: string[]) =>
  execute(
    [tidemark, "run", "-o", `${name}.tidemark`, "--python", anyInterpreter().path, ...words],
    { cwd: folder },
  );

test.each([
  ["module", ["-m", "nosuchmodule"], /No module named '?nosuchmodule/],
  ["syntax", ["broken.py"], /SyntaxError/],
])("%s: no summary", async (name, words, message) => {
  const { status, stderr } = await run(name, ...words);
  expect(status).toBe(1);
  expect(stderr).toMatch(message);
  expect(stderr).toMatch(
    new RegExp(
      `tidemark: the program ended with exit code 1 after .*s; its recording: tidemark summary ${name}\\.tidemark\\n$`,
    ),
  );
  expect(stderr).not.toMatch(/Verdict|Precision/);
});

test("a program that ends without an error keeps its summary, however short it is", async () => {
  const { status, stderr } = await run("short", "short.py");
  expect(status).toBe(0);
  expect(stderr).toMatch(/exit code 0[\s\S]*Verdict/);
});
