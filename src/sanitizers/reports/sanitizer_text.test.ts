import { expect, test } from "vitest";
import { explain } from "../findings/explanations.js";
import { DivertedLines } from "./diverted_lines.js";
import { readSanitizerText } from "./sanitizer_text.js";

const REPORT = `=================================================================
==9==ERROR: AddressSanitizer: heap-use-after-free on address 0x603000025ba3 at pc 0x7f bp 0x7f sp 0x7f
READ of size 1 at 0x603000025ba3 thread T0
    #0|0x7f1|use|/x/f.c|6|/x/faulty.so
    #1|0x7f2|main|||/usr/bin/python3

0x603000025ba3 is located 3 bytes inside of 32-byte region [0x603000025ba0,0x603000025bc0)
freed by thread T0 here:
    #0|0x7f3|free|||/usr/lib/libasan.so.8
    #1|0x7f4|end|/x/f.c|5|/x/faulty.so

previously allocated by thread T0 here:
    #0|0x7f5|begin|/x/f.c|4|/x/faulty.so

SUMMARY: AddressSanitizer: heap-use-after-free /x/f.c:6 in use
Shadow bytes around the buggy address:
`;
const LEAKS = `==9==ERROR: LeakSanitizer: detected memory leaks

Direct leak of 1000 byte(s) in 2 object(s) allocated from:
    #0|0x7f5|leak|/x/f.c|4|/x/faulty.so

Indirect leak of 8 byte(s) in 1 object(s) allocated from:
    #0|0x7f5|other|/x/f.c|9|/x/faulty.so
`;

test("AddressSanitizer's stacks: where, freed, allocated", () => {
  const { reports, damage } = readSanitizerText(REPORT, 9);
  expect(damage).toBeNull();
  expect(reports).toMatchObject([
    {
      kind: "heap-use-after-free",
      message: "READ of size 1; the address is located 3 bytes inside of 32-byte region",
      stack: [
        { function: "use", line: 6, object: "/x/faulty.so" },
        { function: "main", line: 0 },
      ],
      freed: [{ function: "free" }, { function: "end" }],
      allocated: [{ function: "begin" }],
    },
  ]);
});

test("LeakSanitizer's leaks", () => {
  expect(readSanitizerText(LEAKS, 9).reports).toMatchObject([
    { kind: "direct-leak", isLeak: true, bytes: 1000, blocks: 2, stack: [{ function: "leak" }] },
    { kind: "indirect-leak", bytes: 8, blocks: 1 },
  ]);
});

test.each([
  [
    "stack-overflow on address 0x7ffc (pc 0x7f bp 0x7f sp 0x7f T0)",
    "stack-overflow",
    "The stack is full",
  ],
  [
    "memcpy-param-overlap: memory ranges [0x6060,0x6080) and [0x6064, 0x6084) overlap",
    "memcpy-param-overlap",
    "Source and destination overlap",
  ],
  [
    "attempting free on address which was not malloc()-ed: 0x6060 in thread T0",
    "free on address which was not malloc()-ed",
    "Free of a block that is not allocated",
  ],
])("the header %s gives its kind and no address", (header, message, title) => {
  const text = `==9==ERROR: AddressSanitizer: ${header}\n    #0|0x7f1|use|/x/f.c|6|/x/faulty.so\n`;
  const [report] = readSanitizerText(text, 9).reports;
  expect(report?.message).toBe(message);
  expect(report === undefined ? null : explain(report).title).toBe(title);
});

test("a report that is truncated anywhere, and garbage, give no wrong frames", () => {
  for (let end = 0; end < REPORT.length; end += 5) {
    const [report, ...others] = readSanitizerText(REPORT.slice(0, end), 9).reports;
    expect(others).toEqual([]);
    expect(report?.stack.length ?? 0).toBeLessThanOrEqual(2);
  }
  expect(readSanitizerText("\u0000#0|0x1|a|b|c|d\n==x==ERROR: nothing\n", 9).reports).toEqual([]);
});

test("undefined behaviour is separated from what the program writes, at any cut", () => {
  const report = `/x/f.c:3:1: runtime error: signed integer overflow: 1 + 2
    #0|0x7f1|shift|/x/f.c|3|/x/faulty.so

`;
  const text = `before\n${report}after\n${report.replace("signed", "other")}last without an end`;
  for (const size of [1, 3, 1000]) {
    let passed = "";
    const lines = new DivertedLines((piece) => {
      passed += piece;
    });
    for (let at = 0; at < text.length; at += size) {
      lines.write(text.slice(at, at + size));
    }
    const { reports } = readSanitizerText(lines.end(), 0);
    expect(passed).toBe("before\nafter\nlast without an end");
    expect(reports).toMatchObject([
      { kind: "undefined-behavior", stack: [{ function: "shift" }] },
      { kind: "undefined-behavior" },
    ]);
  }
});
