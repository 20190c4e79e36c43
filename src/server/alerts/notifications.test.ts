/** Times and forms of notifications. */
import { describe, expect, test } from "vitest";
import type { AlertJson } from "../../model/documents/alert_document.js";
import { type Moment, notificationsFor, type Sent } from "./notifications.js";
import { RECEIVER, type Receiver, receiversOf } from "./receivers.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NOW = Date.UTC(2026, 10, 20, 12);

const receiver = (written: object): Receiver =>
  receiversOf([RECEIVER.parse(written)], (name) => `/etc/${name}`)[0] as Receiver;
const WEBHOOK = receiver({ webhook: "https://hooks.example.com/a" });
const SLACK = receiver({ slack: "https://hooks.slack.com/services/a" });
const PAGERDUTY = receiver({ pagerduty: "https://events.pagerduty.com/v2/enqueue", key_file: "k" });
const ALERTMANAGER = receiver({ alertmanager: "http://alertmanager:9093" });

const moment: Moment = {
  nowMs: NOW,
  everyMs: MINUTE,
  linkOf: ({ service }) => `https://tidemark.internal/service?name=${service}&x=1`,
  externalUrl: "https://tidemark.internal",
  secret: "key",
};

function alert(some: Partial<AlertJson> = {}): AlertJson {
  return {
    ...{ id: "0123456789abcdef", service: "shop", version: "42", host: "", cause: "growth" },
    ...{
      state: "firing",
      severity: "warning",
      rules: ["leak"],
      summary: "shop leaks <fast> & long.",
    },
    line: { function: "keep", file: "/srv/shop/app.py", line: 9, kind: "python" },
    holder: { path: ["module app", "KEPT"], type: "dict" },
    ...{ sinceMs: NOW - HOUR, firingMs: NOW - HOUR, lastMs: NOW },
    ...some,
  } as AlertJson;
}

const ID = alert().id;
const FIRING: Sent = { state: "firing", severity: "warning", atMs: NOW };
const bodies = (to: Receiver, about: AlertJson, sent?: Sent) =>
  notificationsFor(to, [about], new Map(sent === undefined ? [] : [[ID, sent]]), moment).map(
    // The tests read single fields of what is sent as JSON.
    ({ body }) => JSON.parse(JSON.stringify(body)),
  );

describe("webhooks", () => {
  test("get an alert when it begins to fire, and in the form of Alertmanager's webhooks", () => {
    const [body] = bodies(WEBHOOK, alert());
    expect(body).toMatchObject({
      ...{ version: "4", status: "firing", groupKey: ID, externalURL: "https://tidemark.internal" },
      alerts: [
        {
          status: "firing",
          fingerprint: ID,
          labels: { alertname: "TidemarkMemoryGrowth", service: "shop", severity: "warning" },
          annotations: { line: "keep (app.py:9)", holder: "module app → KEPT" },
          startsAt: "2026-11-20T11:00:00.000Z",
          endsAt: "0001-01-01T00:00:00Z",
        },
      ],
    });
    expect(body.commonLabels).not.toHaveProperty("host");
    expect(body.alerts[0].annotations).not.toHaveProperty("growth");
  });

  test("get nothing about pending, silenced and acknowledged alerts", () => {
    const note = { atMs: NOW, by: "ann", note: "" };
    expect(bodies(WEBHOOK, alert({ state: "pending" }))).toEqual([]);
    expect(bodies(WEBHOOK, alert({ silenced: { ...note, untilMs: NOW + 1 } }))).toEqual([]);
    expect(bodies(WEBHOOK, alert({ acknowledged: note }))).toEqual([]);
  });

  test("get it again after four hours, unless somebody acknowledged it", () => {
    const sent = (hours: number): Sent => ({ ...FIRING, atMs: NOW - hours * HOUR });
    expect(bodies(WEBHOOK, alert(), sent(3))).toEqual([]);
    expect(bodies(WEBHOOK, alert(), sent(4))).toHaveLength(1);
    const acknowledged = { atMs: NOW, by: "", note: "" };
    expect(bodies(WEBHOOK, alert({ acknowledged }), sent(9))).toEqual([]);
    // An alert that has become critical is sent at once.
    expect(bodies(WEBHOOK, alert({ severity: "critical" }), sent(1))).toHaveLength(1);
  });

  test("get its end once, if they got its beginning", () => {
    const ended = alert({ state: "resolved", resolvedMs: NOW });
    expect(bodies(WEBHOOK, ended)).toEqual([]);
    expect(bodies(WEBHOOK, ended, { ...FIRING, atMs: 0 })).toMatchObject([
      { status: "resolved", alerts: [{ endsAt: "2026-11-20T12:00:00.000Z" }] },
    ]);
    expect(bodies(WEBHOOK, ended, { ...FIRING, state: "resolved" })).toEqual([]);
  });

  test("that want critical alerts get no others", () => {
    const critical = { ...WEBHOOK, severity: "critical" } as const;
    expect(bodies(critical, alert())).toEqual([]);
    expect(bodies(critical, alert({ severity: "critical" }))).toHaveLength(1);
    // It was critical when it was sent: its end is sent, too.
    const ended = alert({ state: "resolved", resolvedMs: NOW });
    expect(bodies(critical, ended, { ...FIRING, atMs: 0 })).toHaveLength(1);
  });
});

test("Slack gets text without markup of the program's own", () => {
  const [{ text }] = bodies(SLACK, alert()) as [{ text: string }];
  expect(text).toBe(
    "*firing, warning: shop since version 42*\nshop leaks &lt;fast&gt; &amp; long.\n<https://tidemark.internal/service?name=shop&amp;x=1|Open in Tidemark>",
  );
  const own = receiver({ slack: SLACK.url, template: "<!here> {service} {line} {growth}." });
  const unknown = receiver({ slack: SLACK.url, template: "{growth}" });
  expect(bodies(unknown, alert())[0].text).toContain("shop leaks");
  expect(bodies(own, alert())[0].text).toBe("<!here> shop keep (app.py:9) .");
});

test.each([
  [{}, "shop since version 42"],
  [{ cause: "oom-kill" }, "shop version 42"],
  [{ version: "" }, "shop"],
  [{ cause: "silence", service: "", version: "", host: "node<1>" }, "host node&lt;1&gt;"],
  [{ cause: "silence", service: "", version: "" }, "all hosts"],
] as const)("a message is headed by what it is about: %j", (some, subject) => {
  expect(bodies(SLACK, alert(some))[0].text).toContain(`*firing, warning: ${subject}*\n`);
});

test("PagerDuty gets one incident that is triggered, acknowledged and resolved", () => {
  const firing = FIRING;
  const acknowledged = { atMs: NOW, by: "", note: "" };
  const events = [
    ...bodies(PAGERDUTY, alert()),
    ...bodies(PAGERDUTY, alert({ acknowledged }), firing),
    ...bodies(PAGERDUTY, alert({ acknowledged }), { ...firing, state: "acknowledged" }),
    ...bodies(PAGERDUTY, alert({ state: "resolved", resolvedMs: NOW }), firing),
  ];
  expect(events.map(({ event_action }) => event_action)).toEqual([
    "trigger",
    "acknowledge",
    "resolve",
  ]);
  expect(new Set(events.map(({ dedup_key }) => dedup_key))).toEqual(new Set([`tidemark-${ID}`]));
  expect(events[0]).toMatchObject({ routing_key: "key", payload: { source: "shop" } });
  expect(events[0].payload.custom_details).toMatchObject({ version: "42" });
});

test("Alertmanager gets every firing alert again, which ends by itself if nothing follows", () => {
  const sent = FIRING;
  const about = [alert(), alert({ id: "b", state: "pending" }), alert({ id: "c", host: "h" })];
  const [all, ...others] = notificationsFor(ALERTMANAGER, about, new Map([[ID, sent]]), moment);
  expect(others).toEqual([]);
  expect(all?.body).toMatchObject([
    { labels: { service: "shop" }, endsAt: "2026-11-20T12:04:00.000Z" },
    { labels: { host: "h" } },
  ]);
  const ended = (ago: number) => alert({ state: "resolved", resolvedMs: NOW - ago });
  expect(bodies(ALERTMANAGER, ended(MINUTE))).toMatchObject([
    [{ endsAt: "2026-11-20T11:59:00.000Z" }],
  ]);
  expect(bodies(ALERTMANAGER, ended(HOUR))).toEqual([]);
});
