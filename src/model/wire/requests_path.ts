/** Of the requests of people to collectors; here without the checks of requests.ts, which the pages do not need. */
export const REQUESTS_PATH = "/api/v1/requests";
