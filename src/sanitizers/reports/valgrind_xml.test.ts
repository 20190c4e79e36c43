import { describe, expect, test } from "vitest";
import type { ReportFile } from "./report.js";
import { ValgrindReader } from "./valgrind_xml.js";

const frame = (name: string) =>
  `<frame><ip>0x1</ip><obj>/x/faulty.so</obj><fn>${name}</fn><dir>/x</dir><file>f.c</file><line>7</line></frame>`;
const error = (unique: string, kind = "InvalidRead") =>
  `<error><unique>${unique}</unique><tid>1</tid><kind>${kind}</kind><what>Invalid read of size 1</what>` +
  `<stack>${frame("use")}</stack><auxwhat>Address 0x5 is 3 bytes inside a block of size 32 free'd</auxwhat>` +
  `<stack>${frame("end")}</stack><auxwhat>Block was alloc'd at</auxwhat><stack>${frame("begin")}</stack></error>`;
const document = (body: string, protocol = 4) =>
  `<?xml version="1.0"?>\n<valgrindoutput><protocolversion>${protocol}</protocolversion>` +
  `<protocoltool>memcheck</protocoltool><pid>42</pid>${body}</valgrindoutput>`;

/** Read in pieces that cut elements and characters. */
function read(text: string, pieceBytes = 7): ReportFile {
  const reader = new ValgrindReader();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    reader.write(bytes.subarray(at, at + pieceBytes));
  }
  return reader.end();
}

describe("Valgrind's XML", () => {
  test.each([4, 5, 6])("protocol %i: stacks, counts and leaks", (protocol) => {
    const leak =
      "<error><unique>0x2</unique><kind>Leak_DefinitelyLost</kind><xwhat><text>1,000 bytes lost</text>" +
      `<leakedbytes>1000</leakedbytes><leakedblocks>1</leakedblocks></xwhat><stack>${frame("leak")}</stack></error>`;
    const counts = "<errorcounts><pair><count>9</count><unique>0x1</unique></pair></errorcounts>";
    const {
      pid,
      reports,
      counts: times,
      damage,
    } = read(document(error("0x1") + leak + counts, protocol));
    expect([pid, damage, times]).toEqual([42, null, [9, 1]]);
    expect(reports).toMatchObject([
      {
        kind: "InvalidRead",
        message: "Invalid read of size 1; the address is 3 bytes inside a block of size 32 free'd",
        stack: [{ function: "use", file: "/x/f.c", line: 7, object: "/x/faulty.so" }],
        freed: [{ function: "end" }],
        allocated: [{ function: "begin" }],
      },
      { kind: "Leak_DefinitelyLost", isLeak: true, bytes: 1000, blocks: 1 },
    ]);
  });

  test("refuses a protocol that it does not know, by both versions", () => {
    expect(() => read(document("", 7))).toThrow(
      /TM-E091 Valgrind wrote XML of protocol 7, this Tidemark reads 4 to 6/,
    );
    expect(() => read(document("", 3))).toThrow(/TM-E091/);
  });

  test("keeps everything before the point where a file is truncated, wherever that is", () => {
    const whole = document(error("0x1") + error("0x2"));
    const first = whole.indexOf("</error>") + "</error>".length;
    for (let end = 0; end < whole.length - 1; end += 11) {
      const { reports, damage } = read(whole.slice(0, end));
      expect(damage).not.toBeNull();
      expect(reports.length).toBe(
        end < first ? 0 : end < whole.lastIndexOf("</error>") + 8 ? 1 : 2,
      );
    }
  });

  test.each([
    ["garbage", "\u0000\u0001 no XML at all <<<>>>"],
    ["an empty file", ""],
    ["another document", "<html><body>x</body></html>"],
    [
      "entities that grow",
      '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><valgrindoutput>&b;</valgrindoutput>',
    ],
    ["an external entity", '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'],
    ["deep nesting", `<valgrindoutput>${"<a>".repeat(50_000)}`],
  ])("reports %s as damage, and nothing else", (_, text) => {
    const { reports, damage } = read(text, 4096);
    expect(reports).toEqual([]);
    expect(damage).toMatch(/\w+/);
  });

  test("bounds the memory that text, frames and numbers take", () => {
    const long = "x".repeat(1 << 20);
    const frames = frame(long).repeat(2) + frame("f").repeat(2_000);
    const body = `<error><unique>1</unique><kind>InvalidRead</kind><what>${long}</what><stack>${frames}</stack></error>`;
    const counts = "<errorcounts><pair><count>-5e99</count><unique>1</unique></pair></errorcounts>";
    const { reports, counts: times, damage } = read(document(body + counts), 65_536);
    expect(damage).toBeNull();
    expect(reports[0]?.message.length).toBeLessThan(20_000);
    expect(reports[0]?.stack.length).toBe(500);
    expect(times).toEqual([1]);
  });
});
