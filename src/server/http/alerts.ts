/** The routes of alerts: to list, acknowledge and silence them. */
import type { Hono, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { z } from "zod";
import type { Millis } from "../../model/base/units.js";
import type { AlertJson } from "../../model/documents/alert_document.js";
import { badUsage, nothingThere } from "../../model/errors/errors.js";
import type { Alerting } from "../alerts/alerting.js";
import { refusal } from "../answers/refusal.js";
import { ACKNOWLEDGE, ALERTS, SILENCE } from "./collector_routes.js";
import type { ApiRoute } from "./declared_route.js";
import { valuesIn } from "./parameters.js";

/** A change that a person made, for the log. */
export interface AuditLine {
  readonly did: "acknowledge" | "silence";
  readonly alert: string;
  readonly [detail: string]: unknown;
}

const MOST_BYTES = 16_384;
const LONGEST_SILENCE_MS: Millis = 30 * 86_400_000;
const note = { by: z.string().max(200).default(""), note: z.string().max(2000).default("") };
const ACKNOWLEDGED = z.strictObject({ ...note, undo: z.boolean().default(false) });
const SILENCED = z.strictObject({
  ...note,
  forMs: z.number().int().min(0).max(LONGEST_SILENCE_MS),
});

export function addAlerts(
  app: Hono,
  alerting: Alerting,
  allowed: MiddlewareHandler,
  own: MiddlewareHandler,
  audit: (line: AuditLine) => void,
): void {
  app.get(ALERTS.path, (context) => {
    valuesIn(context.req.url, ALERTS.parameters);
    return context.json(alerting.document());
  });
  const limit = bodyLimit({
    maxSize: MOST_BYTES,
    onError: (context) =>
      refusal(context, 413, `the body is too large: the limit is ${MOST_BYTES >> 10} KiB`),
  });
  const change = <Form extends z.ZodType>(
    { path }: ApiRoute,
    form: Form,
    act: (id: string, given: z.infer<Form>) => AlertJson | null,
  ) => {
    app.post(path.replace("{id}", ":id"), allowed, own, limit, async (context) => {
      const parsed = form.safeParse(await context.req.json().catch(() => null));
      if (!parsed.success) {
        const [issue] = parsed.error.issues;
        throw badUsage(
          `the body is not as expected: ${[...(issue?.path ?? []), issue?.message].join(": ")}`,
          "see /api/openapi.json",
        );
      }
      const alert = act(context.req.param("id") ?? "", parsed.data);
      if (alert === null) {
        throw nothingThere("there is no such alert", `list them: GET ${ALERTS.path}`);
      }
      return context.json(alert);
    });
  };
  change(ACKNOWLEDGE, ACKNOWLEDGED, (id, { undo, ...given }) => {
    const alert = alerting.acknowledge(id, undo ? null : { atMs: Date.now(), ...given });
    if (alert !== null) {
      audit({ did: "acknowledge", alert: id, service: alert.service, undo, ...given });
    }
    return alert;
  });
  change(SILENCE, SILENCED, (id, { forMs, ...given }) => {
    const atMs = Date.now();
    const alert = alerting.silence(
      id,
      forMs === 0 ? null : { atMs, untilMs: atMs + forMs, ...given },
    );
    if (alert !== null) {
      audit({ did: "silence", alert: id, service: alert.service, forMs, ...given });
    }
    return alert;
  });
}
