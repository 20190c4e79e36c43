import { expect, test } from "vitest";
import { attachProgressText } from "./attach_progress.js";

const frame = { function: "record", file: "/srv/app.py", line: 27, kind: "python" as const };
const PROGRESS = {
  elapsedMs: 46_000,
  leftMs: 14_000,
  rssBytes: 121 * 2 ** 20,
  rssGrowthBytes: 3 * 2 ** 20,
  tree: null,
  most: { frame, bytes: 2 * 2 ** 20 },
  verdict: "",
};
const TREE = { processes: 5, pssBytes: 400 * 2 ** 20, growthBytes: 2 ** 20 };

test("figures that were read some time ago are marked, and RSS, which is read each time, is not", () => {
  const text = (readAgoMs: number) => attachProgressText(4242, { ...PROGRESS, readAgoMs });
  expect(text(1_000)).toMatch(
    /; RSS 121 MiB \(\+3\.00 MiB\); 2\.00 MiB live by record \S+app\.py:27$/,
  );
  expect(text(15_500)).toMatch(
    /; RSS 121 MiB \(\+3\.00 MiB\); 2\.00 MiB live by .*:27 \(read 16 s ago\)$/,
  );
  expect(attachProgressText(4242, { ...PROGRESS, tree: TREE, readAgoMs: 15_500 })).toMatch(
    /PSS of 5 processes 400 MiB \(\+1\.00 MiB\) \(read 16 s ago\); /,
  );
});

test("a log repeats no figure that was not read again", () => {
  const text = (readAgoMs: number, tree: typeof TREE | null) =>
    attachProgressText(4242, { ...PROGRESS, tree, readAgoMs }, 15_000);
  expect(text(0, TREE)).toMatch(/PSS of 5 processes 400 MiB \(\+1\.00 MiB\); 2\.00 MiB live by/);
  expect(text(15_000, TREE)).toBe("process 4242: 46 s, 14 s left");
  expect(text(15_000, null)).toBe("process 4242: 46 s, 14 s left; RSS 121 MiB (+3.00 MiB)");
});
