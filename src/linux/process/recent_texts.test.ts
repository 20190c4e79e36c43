import { expect, test } from "vitest";
import { type ReadText, RecentTexts } from "./recent_texts.js";

test("what is worked out from texts is kept as long as they are, for each subject", () => {
  let nowMs = 0;
  const texts = new RecentTexts(() => nowMs, 500);
  const asked: string[] = [];
  const name = (path: string, read: ReadText) => {
    asked.push(path);
    return read(path)?.trim() ?? null;
  };
  const size = (path: string, read: ReadText) => read(path)?.length ?? 0;
  const work = () => [
    texts.worked(name, "/proc/self/comm", "own"),
    texts.worked(name, "/proc/self/no_such_file", "none"),
    texts.worked(size, "/proc/self/comm", "own"),
  ];
  const [own, none, length] = work();
  expect([typeof own, none, length]).toEqual(["string", null, String(own).length + 1]);
  expect(work()).toEqual([own, none, length]);
  expect(asked).toEqual(["/proc/self/comm", "/proc/self/no_such_file"]);
  nowMs = 500;
  work();
  expect(asked).toHaveLength(4);
  texts.forget();
  work();
  expect(asked).toHaveLength(6);
});
