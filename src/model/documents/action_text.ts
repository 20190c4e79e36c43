/** An action in one line. */
import { formatBytes } from "../base/numbers.js";
import { oneLine } from "../errors/errors.js";
import type { ActionJson } from "./action_document.js";

/** What an action did, or why it did nothing. */
export function actionText(action: ActionJson): string {
  const { what, pod, state, reason, why, outcome } = action;
  const { beforeBytes, afterBytes, hourLaterBytes } = action;
  const name = oneLine(pod === undefined ? what : `${what} (pod ${pod.namespace}/${pod.name})`);
  switch (state) {
    case "would-act":
      return oneLine(`dry run: ${reason}; ${name} would be tried`);
    case "refused":
      return oneLine(`${reason}; ${name} was not tried: ${why}`);
    case "running":
      return oneLine(`${reason}; ${name} begins. Evidence: ${action.evidence}`);
    case "failed":
      return oneLine(`${name} failed: ${why}`);
    case "done": {
      const fell = (beforeBytes ?? 0) - (afterBytes ?? 0);
      const change =
        action.helped === true
          ? `RSS fell by ${formatBytes(fell)} to ${formatBytes(afterBytes ?? 0)}`
          : `RSS is ${formatBytes(afterBytes ?? 0)} after ${formatBytes(beforeBytes ?? 0)}: it did not help`;
      const later =
        hourLaterBytes === undefined ? "" : `; an hour later it is ${formatBytes(hourLaterBytes)}`;
      return oneLine(`${name}: ${outcome}. ${change}${later}`);
    }
  }
}
