/** The form of an action as it is stored and sent, with limits on its texts. */
import { z } from "zod";
import { ACTION_STATES, ACTIONS } from "../documents/action_document.js";

/** Of each text of an action, the service among them. */
export const LONGEST_ACTION_TEXT = 2_048;

const bytes = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const text = z.string().max(LONGEST_ACTION_TEXT);
const timeMs = z
  .number()
  .int()
  .min(0)
  .max(Date.UTC(2200, 0, 1));

/** Names as Kubernetes allows them, so that they can be parts of a path. */
export const POD_NAMESPACE = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
const POD = z.strictObject({
  namespace: POD_NAMESPACE,
  name: z
    .string()
    .max(253)
    .regex(/^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/),
  uid: z.string().regex(/^[-\w]{1,128}$/),
});

/** Body of a request to evict the pod of a lease. */
export const EVICTION = z.strictObject({ id: z.uuid(), pod: POD });

export const ACTION_RECORD = z.strictObject({
  schema: z.literal("tidemark.action/1"),
  id: z.uuid(),
  timeMs,
  ...{ service: text.min(1), version: text, host: text },
  pid: z
    .number()
    .int()
    .min(0)
    .max(2 ** 31),
  ...{ action: z.enum(ACTIONS), what: text, state: z.enum(ACTION_STATES) },
  pod: POD.optional(),
  ...{ reason: text, why: text, outcome: text, evidence: text },
  beforeBytes: bytes.optional(),
  afterBytes: bytes.optional(),
  hourLaterBytes: bytes.optional(),
  helped: z.boolean().optional(),
});
