/** Of the requests of people to collectors; here without the checks of requests.ts, which pages and commands do not need. */
import type { Millis } from "../base/units.js";

export const REQUESTS_PATH = "/api/v1/requests";
export const SHORTEST_REQUEST_MS: Millis = 10_000;
export const LONGEST_REQUEST_MS: Millis = 3_600_000;
