/** The form of `when` in a policy: one condition of a trigger or an action. */
import { z } from "zod";
import { rateIn, shareIn } from "../../model/settings/rate.js";
import { duration, quantity } from "../../model/settings/settings_file.js";
import { conditionOf, levelIn } from "./conditions.js";

export const share = quantity(shareIn, "a share such as 10%");
export const pattern = z.string().min(1).max(1000);

export const CONDITION = z
  .strictObject({
    growth: quantity(rateIn, "a rate such as 20%/h or 100MiB/h").optional(),
    for: duration.optional(),
    rss: quantity(levelIn, "a size such as 2GiB, or 500MiB above baseline").optional(),
    limit: share.optional(),
    pressure: share.optional(),
    verdict: pattern.optional(),
    oom_kill: z.literal(true).optional(),
  })
  .transform((when, context) => {
    const condition = conditionOf(when);
    if (typeof condition === "string") {
      context.addIssue({ code: "custom", message: condition });
      return z.NEVER;
    }
    return condition;
  });
