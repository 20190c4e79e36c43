import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fileUnusable } from "../../model/errors/errors.js";
import { requireOtherFile, writeWhole, writeWholeFolder } from "./write_whole.js";

const own = { isOwn: () => true };
const parquet = { ...own, suffix: ".parquet" };
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-whole-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

it("replaces a file only once the new one is complete", async () => {
  const path = join(folder, "page.html");
  await writeWhole(path, own, (file) => writeFile(file, "old"));
  await expect(
    writeWhole(path, own, async (file) => {
      await writeFile(file, "half");
      throw Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" });
    }),
  ).rejects.toThrow(/TM-E004 cannot write .*page\.html: ENOSPC/);
  expect(readFileSync(path, "utf8")).toBe("old");
  expect(readdirSync(folder)).toEqual(["page.html"]);
});

it("replaces protected files only if forced, but replaces empty files", async () => {
  const path = join(folder, "mine.py");
  writeFileSync(path, "print()\n");
  const foreign = { isOwn: () => false };
  const never = async () => {
    throw new Error("must not be asked to write");
  };
  await expect(writeWhole(path, foreign, never)).rejects.toThrow(/TM-E017 .*mine\.py exists/);
  expect(readFileSync(path, "utf8")).toBe("print()\n");
  await writeWhole(path, { ...foreign, force: true }, (file) => writeFile(file, "new"));
  expect(readFileSync(path, "utf8")).toBe("new");
  writeFileSync(path, "");
  await writeWhole(path, foreign, (file) => writeFile(file, "newer"));
  expect(readFileSync(path, "utf8")).toBe("newer");
  const tables = join(folder, "tables");
  mkdirSync(tables);
  writeFileSync(join(tables, "theirs.parquet"), "PAR1");
  await expect(writeWholeFolder(tables, { ...foreign, suffix: ".parquet" }, never)).rejects.toThrow(
    /TM-E017 .*theirs\.parquet/,
  );
});

it("writes through a link", async () => {
  writeFileSync(join(folder, "target"), "old");
  symlinkSync("target", join(folder, "link"));
  await writeWhole(join(folder, "link"), own, (file) => writeFile(file, "new"));
  expect(readFileSync(join(folder, "target"), "utf8")).toBe("new");
  expect(lstatSync(join(folder, "link")).isSymbolicLink()).toBe(true);
});

it("reports errors of the temporary file for the file itself", async () => {
  const path = join(folder, "x.duckdb");
  const failing = writeWhole(path, own, async (file) => {
    throw fileUnusable(file, "write", `could not write all bytes to '${file}'`);
  });
  await expect(failing).rejects.toThrow(
    `TM-E004 cannot write ${path}: could not write all bytes to '${path}'`,
  );
});

it("names the file that cannot be written", async () => {
  await expect(writeWhole(folder, own, (file) => writeFile(file, ""))).rejects.toThrow(
    /is a directory/,
  );
  const nowhere = join(folder, "missing", "x");
  await expect(writeWhole(nowhere, own, (file) => writeFile(file, ""))).rejects.toThrow(
    /TM-E004 .*no such file or directory/,
  );
});

it("writes directly to a device", async () => {
  await writeWhole("/dev/null", own, (file) => writeFile(file, "gone"));
});

it("recognizes the recording under any of its names", () => {
  const recording = join(folder, "a.tidemark");
  writeFileSync(recording, "");
  symlinkSync("a.tidemark", join(folder, "link"));
  for (const name of ["a.tidemark", "link", "./x/../a.tidemark"]) {
    expect(() => requireOtherFile(`${folder}/${name}`, recording)).toThrow(/recording itself/);
  }
  expect(() => requireOtherFile(join(folder, "b.html"), recording)).not.toThrow();
});

it("replaces the tables of a folder only once all new ones are complete", async () => {
  const tables = join(folder, "tables");
  const write = (text: string) => async (part: string) => {
    await writeFile(join(part, "a.parquet"), text);
    await writeFile(join(part, "b.parquet"), text);
    return ["a.parquet", "b.parquet"];
  };
  const files = [join(tables, "a.parquet"), join(tables, "b.parquet")];
  expect(await writeWholeFolder(tables, parquet, write("old"))).toEqual(files);
  const failing = writeWholeFolder(tables, parquet, async (part) => {
    await writeFile(join(part, "a.parquet"), "half");
    throw fileUnusable(part, "write", "ENOSPC: no space left");
  });
  await expect(failing).rejects.toThrow(`TM-E004 cannot write ${tables}: ENOSPC`);
  expect(readdirSync(tables)).toEqual(["a.parquet", "b.parquet"]);
  expect(files.map((file) => readFileSync(file, "utf8"))).toEqual(["old", "old"]);
  await writeWholeFolder(tables, parquet, write("new"));
  expect(files.map((file) => readFileSync(file, "utf8"))).toEqual(["new", "new"]);
});

it("leaves other folders alone, and creates none without need", async () => {
  writeFileSync(join(folder, "notes.txt"), "");
  const never = async () => {
    throw new Error("must not be asked to write");
  };
  await expect(writeWholeFolder(folder, parquet, never)).rejects.toThrow(
    /it contains other files \(notes\.txt\)/,
  );
  await expect(writeWholeFolder(join(folder, "notes.txt"), parquet, never)).rejects.toThrow(
    /TM-E004/,
  );
  const fresh = join(folder, "fresh");
  await expect(writeWholeFolder(fresh, parquet, never)).rejects.toThrow("must not be asked");
  expect(readdirSync(folder)).toEqual(["notes.txt"]);
});

it.each([
  [
    "a file",
    `await writeWhole("out.html", { isOwn: () => true }, async (file) => {
      await writeFile(file, "half");
      await wait();
    });`,
  ],
  [
    "a folder",
    `await writeWholeFolder("out.parquet", { isOwn: () => true, suffix: ".parquet" }, async (folder) => {
      await writeFile(folder + "/a.parquet", "half");
      await wait();
      return ["a.parquet"];
    });`,
  ],
])("leaves nothing of %s behind when it is interrupted", async (_, write) => {
  const module = new URL("../../../dist/cli/files/write_whole.js", import.meta.url).href;
  const script = `
    import { writeFile } from "node:fs/promises";
    import { writeWhole, writeWholeFolder } from ${JSON.stringify(module)};
    const wait = () => {
      console.log("writing");
      return new Promise((resolve) => setTimeout(resolve, 60_000));
    };
    ${write}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  expect(readdirSync(folder)).toHaveLength(1);
  child.kill("SIGINT");
  expect(await once(child, "exit")).toEqual([130, null]);
  expect(readdirSync(folder)).toEqual([]);
});
