/** Keeps pages up to date: by the server's events or, if a token rules out events, by polling. */
import { useQueryClient } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useState } from "react";
import type { Millis, TimeMs } from "../../../../src/model/base/units.js";
import { EVENTS_PATH } from "../../../../src/model/wire/services.js";
import { hasToken } from "./api.js";

/** Between two updates, however fast the server's events come. */
const SHORTEST_MS: Millis = 3_000;
const POLL_MS: Millis = 15_000;

export const NowContext = createContext<TimeMs>(Date.now());

/** The end of the range that pages request; it moves forward when something has changed. */
export function useNow(): TimeMs {
  return useContext(NowContext);
}

export function useLiveNow(): TimeMs {
  const [nowMs, setNow] = useState(() => Date.now());
  const client = useQueryClient();
  useEffect(() => {
    let due = 0;
    const changed = () => {
      if (due === 0) {
        due = window.setTimeout(() => {
          due = 0;
          setNow(Date.now());
          void client.invalidateQueries({ queryKey: ["instance"] });
        }, SHORTEST_MS);
      }
    };
    const polling = window.setInterval(changed, POLL_MS);
    const events = hasToken() ? null : new EventSource(EVENTS_PATH);
    events?.addEventListener("changed", changed);
    return () => {
      window.clearTimeout(due);
      window.clearInterval(polling);
      events?.close();
    };
  }, [client]);
  return nowMs;
}
