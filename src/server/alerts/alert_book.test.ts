/** States of alerts: what begins, keeps, continues and ends them. */
import { beforeEach, describe, expect, test } from "vitest";
import type { AlertJson } from "../../model/documents/alert_document.js";
import { AlertBook, MOST_ALERTS } from "./alert_book.js";
import type { Finding } from "./findings.js";
import { rulesOf } from "./rules.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 10, 20, 12);
const NOBODY: ReadonlySet<string> = new Set();

const [leak, growth] = rulesOf([
  { name: "leak", when: { kind: "verdict", patterns: ["*leak"] }, for: 5 * MINUTE },
  {
    name: "growth",
    when: { kind: "growth", rate: { bytes: 1 } },
    for: 30 * MINUTE,
    severity: "critical",
  },
]) as [Finding["rule"], Finding["rule"]];

function finding(some: Partial<Finding> = {}): Finding {
  return {
    ...{ rule: leak, holds: "fully", service: "shop", version: "42", host: "", cause: "growth" },
    summary: "shop leaks.",
    ...some,
  } as Finding;
}

let book: AlertBook;
beforeEach(() => {
  book = new AlertBook();
});
const at = (afterMs: number, ...findings: Finding[]) => {
  book.advance(findings, NOBODY, START + afterMs);
  return book.all(START + afterMs);
};
const states = (alerts: ReturnType<typeof at>) => alerts.map(({ state }) => state);

describe("a rule that holds", () => {
  test("is pending until it has held for its time, then fires", () => {
    expect(states(at(0, finding()))).toEqual(["pending"]);
    expect(states(at(4 * MINUTE, finding()))).toEqual(["pending"]);
    const [alert] = at(5 * MINUTE, finding());
    expect(alert).toMatchObject({ state: "firing", sinceMs: START, firingMs: START + 5 * MINUTE });
  });

  test("begins nothing if it only nearly holds, and keeps what it began", () => {
    expect(at(0, finding({ holds: "nearly" }))).toEqual([]);
    at(0, finding());
    expect(states(at(5 * MINUTE, finding({ holds: "nearly" })))).toEqual(["firing"]);
    expect(states(at(5 * HOUR, finding({ holds: "nearly" })))).toEqual(["firing"]);
  });

  test("is forgotten if it stops while it is pending", () => {
    at(0, finding());
    expect(at(MINUTE)).toEqual([]);
  });
});

describe("an alert that fires", () => {
  beforeEach(() => {
    at(0, finding());
    at(5 * MINUTE, finding());
  });

  test("is resolved once no rule has held for a quarter of an hour", () => {
    expect(states(at(10 * MINUTE))).toEqual(["firing"]);
    expect(states(at(15 * MINUTE, finding()))).toEqual(["firing"]);
    const [alert] = at(30 * MINUTE);
    expect(alert).toMatchObject({ state: "resolved", resolvedMs: START + 30 * MINUTE });
    expect(at(30 * MINUTE + 8 * DAY)).toEqual([]);
  });

  test("begins again as the same alert, without its acknowledgement and with its silence", () => {
    const [{ id }] = book.all(START) as [AlertJson];
    book.acknowledge(id, { atMs: START, by: "ann", note: "" });
    book.silence(id, { atMs: START, by: "", note: "", untilMs: START + 2 * DAY });
    at(HOUR);
    const [alert] = at(2 * HOUR, finding());
    expect(alert).toMatchObject({ id, state: "pending", sinceMs: START + 2 * HOUR });
    expect(alert).not.toHaveProperty("acknowledged");
    expect(alert).not.toHaveProperty("firingMs");
    expect(alert).toHaveProperty("silenced");
    expect(book.all(START + 3 * DAY)[0]).not.toHaveProperty("silenced");
  });

  test("continues when the estimate of the first version changes", () => {
    const [alert, ...others] = at(10 * MINUTE, finding({ version: "41" }));
    expect(others).toEqual([]);
    expect(alert).toMatchObject({ state: "firing", version: "42" });
  });

  test("is another one for another version, host or cause beside it", () => {
    const alerts = at(
      ...([10 * MINUTE, finding(), finding({ version: "43" }), finding({ host: "a" })] as const),
      finding({ cause: "level" }),
    );
    expect(alerts).toHaveLength(4);
  });

  test("keeps its state for a day while its service is not heard", () => {
    book.advance([], new Set(["shop"]), START + 2 * HOUR);
    expect(states(book.all(START))).toEqual(["firing"]);
    book.advance([], new Set(["shop"]), START + 2 * DAY);
    expect(states(book.all(START))).toEqual(["resolved"]);
  });

  test("goes on after a restart of the server, and has a whole time to clear", () => {
    const again = new AlertBook(JSON.parse(JSON.stringify(book.stored())), book.evaluatedMs);
    again.advance([], NOBODY, START + 2 * HOUR, 5 * MINUTE);
    expect(again.all(START)[0]).toMatchObject({ state: "firing", firingMs: START + 5 * MINUTE });
    for (let minutes = 1; minutes <= 15; minutes++) {
      again.advance([], NOBODY, START + 2 * HOUR + minutes * MINUTE, 5 * MINUTE);
    }
    expect(states(again.all(START))).toEqual(["resolved"]);
  });

  test("is resolved in time after a clock that jumped ahead and back", () => {
    at(9 * HOUR, finding());
    at(6 * MINUTE, finding());
    expect(states(at(10 * MINUTE))).toEqual(["firing"]);
    expect(states(at(22 * MINUTE))).toEqual(["resolved"]);
  });

  test("loses its acknowledgement when it becomes critical", () => {
    const [{ id }] = book.all(START) as [AlertJson];
    book.acknowledge(id, { atMs: START, by: "ann", note: "" });
    expect(at(6 * MINUTE, finding())[0]).toHaveProperty("acknowledged");
    const worse = at(7 * MINUTE, finding(), finding({ rule: growth }));
    expect(worse).toMatchObject([{ id, severity: "critical" }]);
    expect(worse[0]).not.toHaveProperty("acknowledged");
  });

  test("is not continued by another version's OOM kill", () => {
    at(6 * MINUTE, finding(), finding({ cause: "oom-kill" }));
    at(11 * MINUTE, finding(), finding({ cause: "oom-kill" }));
    const alerts = at(13 * MINUTE, finding(), finding({ cause: "oom-kill", version: "43" }));
    expect(alerts.filter(({ cause }) => cause === "oom-kill")).toHaveLength(2);
  });
});

test("several rules with one cause are one alert, of the highest severity", () => {
  const line = { function: "f", file: "/srv/a.py", line: 3, kind: "python" } as const;
  const both = [finding({ rule: growth, line, summary: "It grows." }), finding()];
  const [alert, ...others] = at(0, ...both);
  expect(others).toEqual([]);
  expect(alert).toMatchObject({ rules: ["leak", "growth"], severity: "critical", line });
  expect(alert?.summary).toBe("shop leaks.");
  // The rule that has held long enough is enough.
  expect(states(at(5 * MINUTE, ...both))).toEqual(["firing"]);
});

test("the number of alerts is bounded, and what was left out is counted", () => {
  const many = Array.from({ length: MOST_ALERTS + 7 }, (_, n) => finding({ service: `s${n}` }));
  expect(at(0, ...many)).toHaveLength(MOST_ALERTS);
  expect(book.leftOut).toBe(7);
  for (let minutes = 1; minutes < 20; minutes++) {
    at(minutes * MINUTE, ...(minutes < 6 ? many : []));
  }
  for (let minutes = 20; minutes < 40; minutes++) {
    at(minutes * MINUTE);
  }
  // Resolved ones make room.
  expect(at(41 * MINUTE, finding({ service: "new" })).map(({ service }) => service)).toContain(
    "new",
  );
});

test("unknown alerts cannot be acknowledged or silenced", () => {
  expect(book.acknowledge("nothing", null)).toBe(false);
  expect(book.silence("nothing", null)).toBe(false);
});
