import { expect, it } from "vitest";
import { itemAt } from "../../model/base/columns.js";
import { present } from "../../model/base/present.js";
import { profileOf } from "../../model/profile/profile.fixture.js";
import { csv } from "./csv.js";

/** An independent reader of RFC 4180. */
function parse(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(
    /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g,
  )) {
    present(rows.at(-1)).push(quoted?.replaceAll('""', '"') ?? present(plain));
    if (end !== ",") {
      rows.push([]);
    }
  }
  return rows.slice(0, -1);
}

it("writes one row per site, the largest first", () => {
  const [names, ...rows] = parse(
    csv.encode(
      profileOf(`
        main;load@/srv/app.py:7 100 variance=2500 label=a:1,b:2
        main;say,"hi"@/srv/a"b,c.py:9 2000 domain=native thread=loader objects=3 samples=3
      `),
    ),
  );
  const records = rows.map((row) =>
    Object.fromEntries(row.map((value, index) => [itemAt(present(names), index), value])),
  );
  expect(records[0]).toMatchObject({
    pid: "42",
    thread: "loader",
    domain: "native",
    function: 'say,"hi"',
    file: '/srv/a"b,c.py',
    line: "9",
    stack: 'main (app.py:1);say,"hi" (/srv/a"b,c.py:9)',
    live_bytes: "2000",
    live_objects: "3",
    live_samples: "3",
  });
  expect(records[1]).toMatchObject({
    live_bytes: "100",
    live_standard_error: "50",
    labels: "b=2;a=1",
  });
});
