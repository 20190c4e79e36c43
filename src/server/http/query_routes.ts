/** Queries that the store answers. */
import { STREAM_NAME } from "../../model/wire/frames.js";
import { HEAT_MAP_NAMES, HEAT_MAP_PATH } from "../../model/wire/heat_map.js";
import {
  DIAGNOSES_PATH,
  DIFF_FIGURES,
  DIFF_PATH,
  DIFF_SCALES,
  ENDPOINTS_PATH,
  GROWING_PATH,
  INSTANCE_PATH,
  INSTANCE_REPORT_PATH,
  PROFILE_PATH,
  SERIES_GROUPS,
  SERIES_NAMES,
  SERIES_PATH,
  SERVICE_PATH,
  SERVICES_PATH,
  SIZES_PATH,
  VERDICTS_PATH,
} from "../../model/wire/services.js";
import { type ApiRoute, COLUMNS_TYPE, query, route } from "./declared_route.js";
import { condition, matching, moment, needed, oneOf, text, WINDOW, whole } from "./parameters.js";

export const LONGEST_SELECTOR = 16_384;
const SPARKLINE_STEPS = 32;
const MOST_STEPS = 2_000;
/** An answer has at most 150,000 cells, about 1.6 MB. */
const MOST_HEAT_STEPS = 300;
const MOST_HEAT_ROWS = 500;
const MOST_STACKS = 8_192;

const sparkline = whole("Points of each sparkline.", {
  least: 1,
  most: MOST_STEPS,
  usual: SPARKLINE_STEPS,
});
const top = <Usual extends number | undefined>(usual: Usual) =>
  whole("Rows to list; the others are summed in `other`.", {
    least: 1,
    most: MOST_STACKS,
    usual,
  });
const SELECTION = {
  service: needed("Name of the service."),
  version: text("Only this version."),
  instance: text("Only this instance, by the name of its stream."),
};
const ofLabel = condition(
  "`KEY=VALUE`: only what the program allocated under this label of `tidemark.label`.",
);
export const stream = matching(
  "Name of the instance's stream.",
  STREAM_NAME,
  "the name of a stream, 32 hex digits",
);
const selector = (says: string) => needed(says, LONGEST_SELECTOR);

export const SERVICES = route({
  ...query,
  path: SERVICES_PATH,
  summary: "All services of a window: memory, growth, versions, verdict.",
  parameters: { ...WINDOW, steps: sparkline },
  answer: { json: "services" },
});
export const SERVICE = route({
  ...query,
  path: SERVICE_PATH,
  summary: "One service with its instances and events.",
  parameters: { ...WINDOW, name: needed("Name of the service."), steps: sparkline },
  answer: { json: "service" },
});
export const SERIES = route({
  ...query,
  path: SERIES_PATH,
  summary:
    "A gauge over time, summed over instances: the mean of each step over the part of it in which the group reported.",
  parameters: {
    ...WINDOW,
    ...SELECTION,
    name: oneOf("The metric.", SERIES_NAMES, "rssBytes"),
    by: oneOf("The label by which the sum is split.", SERIES_GROUPS, "none"),
    steps: whole("Steps of the window.", { least: 1, most: MOST_STEPS, usual: 200 }),
  },
  answer: { json: "series" },
});
export const HEAT_MAP = route({
  ...query,
  path: HEAT_MAP_PATH,
  summary: "The memory of the instances of a service over time, one row each, the odd ones marked.",
  parameters: {
    ...WINDOW,
    service: needed("Name of the service."),
    version: text("Only this version."),
    name: oneOf("The metric.", HEAT_MAP_NAMES, "rssBytes"),
    steps: whole("Steps of the window.", { least: 1, most: MOST_HEAT_STEPS, usual: 240 }),
    top: whole("Rows: the instances with the largest peaks.", {
      ...{ least: 1, most: MOST_HEAT_ROWS, usual: 300 },
    }),
  },
  answer: { json: "heatMap" },
});
export const PROFILE = route({
  ...query,
  path: PROFILE_PATH,
  summary:
    "The stacks of a window, merged over instances; live bytes are means from the first to the last moment of the window at which one reported.",
  parameters: {
    ...WINDOW,
    ...SELECTION,
    endpoint: text("Only stacks of this endpoint, named as by `endpoints`."),
    where: ofLabel,
    format: oneOf("`columns`: typed arrays, for the pages.", ["json", "columns"], "json"),
    top: top(undefined),
  },
  answer: { json: "profile" },
});
export const DIFF = route({
  ...query,
  path: DIFF_PATH,
  summary: "The differences between two windows, versions, instances or any two selections.",
  parameters: {
    left: selector(
      'Selector of the processes of the left side, such as `{service_name="shop", version="41"}`.',
    ),
    right: selector(
      'Selector of the processes of the right side, such as `{service_name="shop", version="42"}`.',
    ),
    ...WINDOW,
    leftFrom: moment("Start of the left side's window, if it differs from `from`."),
    leftTo: moment("End of the left side's window, if it differs from `to`."),
    rightFrom: moment("Start of the right side's window, if it differs from `from`."),
    rightTo: moment("End of the right side's window, if it differs from `to`."),
    figure: oneOf("The figure that is compared.", DIFF_FIGURES, "liveBytes"),
    per: oneOf(
      "`instance`: each side is divided by its mean number of instances.",
      DIFF_SCALES,
      "instance",
    ),
    top: top<number>(100),
  },
  answer: { json: "diff" },
});
export const GROWING = route({
  ...query,
  path: GROWING_PATH,
  summary: "The stacks that grew in a window, and the bytes allocated in it that survived.",
  parameters: { ...WINDOW, ...SELECTION, top: top<number>(100) },
  answer: { json: "growing" },
});
export const ENDPOINTS = route({
  ...query,
  path: ENDPOINTS_PATH,
  summary:
    "The memory of a window by endpoint: the label `endpoint` that the program sets, else its function that a web or task framework called.",
  parameters: {
    ...WINDOW,
    ...SELECTION,
    by: text("Groups by this label of `tidemark.label` instead."),
    where: ofLabel,
    top: top<number>(100),
  },
  answer: { json: "endpoints" },
});
export const VERDICTS = route({
  ...query,
  path: VERDICTS_PATH,
  summary:
    "The verdicts of all instances that ran in a window: those that run first, then the fastest growing.",
  parameters: { ...WINDOW, kind: text("Only verdicts of this kind.") },
  answer: { json: "verdicts" },
});
export const DIAGNOSES = route({
  ...query,
  path: DIAGNOSES_PATH,
  summary:
    "The diagnosis of each service that reported in a window, from all its processes of the two weeks before the window's end: growth by version, odd instances, sites, forecasts. Leaks come first.",
  parameters: { ...WINDOW, service: text("Only this service.") },
  answer: { json: "diagnoses" },
});
export const SIZES = route({
  ...query,
  path: SIZES_PATH,
  summary:
    "The memory request and limit that each service needs, from the daily peaks of its instances in the two weeks before the window's end, and what a change would save or break.",
  parameters: { ...WINDOW, service: text("Only this service.") },
  answer: { json: "sizes" },
});
export const INSTANCE = route({
  ...query,
  path: INSTANCE_PATH,
  summary: "One instance.",
  parameters: { id: stream },
  answer: { json: "instance" },
});
export const INSTANCE_REPORT = route({
  ...query,
  path: INSTANCE_REPORT_PATH,
  summary: "The report of one instance, for its page.",
  parameters: { id: stream },
  answer: { type: COLUMNS_TYPE },
});

export const QUERY_ROUTES: readonly ApiRoute[] = [
  SERVICES,
  SERVICE,
  SERIES,
  HEAT_MAP,
  PROFILE,
  DIFF,
  GROWING,
  ENDPOINTS,
  VERDICTS,
  DIAGNOSES,
  SIZES,
  INSTANCE,
  INSTANCE_REPORT,
];
