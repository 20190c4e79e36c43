/**
 * The services of the demo fleet: what they allocate, how often they are deployed, and what is wrong with three of them.
 * The names are those of an invented online shop.
 */
import type { Bytes } from "../../model/base/units.js";

const MIB: Bytes = 2 ** 20;

/**
 * How the live bytes of a site develop with the age of the process:
 *
 *   settled  reached within minutes, as imports are      ▁███████
 *   fills    a cache that nears its bound in hours       ▁▄▆▇████
 *   load     follows the requests of the day             ▂▆▂▆▂▆▂▆
 *   leaks    grows by `bytes` a day, and nothing leaves  ▁▂▃▄▅▆▇█
 */
export type Course = "settled" | "fills" | "load" | "leaks";

/** `[function, file, line]`, root first. */
export type DemoStack = readonly (readonly [string, string, number])[];

export interface DemoSite {
  readonly stack: DemoStack;
  readonly course: Course;
  /** Reached in the end; of a leak: gained per day. */
  readonly bytes: Bytes;
  readonly objectBytes: Bytes;
  /** Allocated by malloc, not by Python's allocator. */
  readonly native?: boolean;
  /** What a lookup finds of a leak: who keeps its objects, or that no Python object refers to them. */
  readonly holder?: { readonly path: readonly string[]; readonly type: string } | "none";
}

export interface DemoRelease {
  readonly version: string;
  readonly daysAgo: number;
  readonly sites: readonly DemoSite[];
}

export interface DemoService {
  readonly name: string;
  readonly instances: number;
  readonly limitBytes: Bytes;
  readonly command: readonly string[];
  /** Oldest first; the first is older than the demo's window. */
  readonly releases: readonly DemoRelease[];
}

const PACKAGES = "/usr/lib/python3.12/site-packages";
const LIBRARY = "/usr/lib/python3.12";

interface Framework {
  readonly command: (app: string) => readonly string[];
  /** From the entry point to the code of the service. */
  readonly dispatch: DemoStack;
  readonly imports: readonly (readonly [name: string, mib: number])[];
}

const FASTAPI: Framework = {
  command: (app) => ["python", "-m", "uvicorn", `${app}.main:app`, "--host", "0.0.0.0"],
  dispatch: [
    ["run", `${PACKAGES}/uvicorn/server.py`, 67],
    ["run_asgi", `${PACKAGES}/uvicorn/protocols/http/httptools_impl.py`, 409],
    ["__call__", `${PACKAGES}/starlette/routing.py`, 715],
    ["run_endpoint_function", `${PACKAGES}/fastapi/routing.py`, 212],
  ],
  imports: [
    ["fastapi", 9],
    ["pydantic", 14],
    ["sqlalchemy", 17],
  ],
};

const DJANGO: Framework = {
  command: (app) => ["python", "-m", "gunicorn", `${app}.wsgi`, "--workers", "1"],
  dispatch: [
    ["handle_request", `${PACKAGES}/gunicorn/workers/sync.py`, 178],
    ["__call__", `${PACKAGES}/django/core/handlers/wsgi.py`, 124],
    ["_get_response", `${PACKAGES}/django/core/handlers/base.py`, 197],
  ],
  imports: [
    ["django", 31],
    ["rest_framework", 8],
    ["psycopg", 5],
  ],
};

const CELERY: Framework = {
  command: (app) => ["python", "-m", "celery", "-A", `${app}.tasks`, "worker", "--pool", "solo"],
  dispatch: [
    ["start", `${PACKAGES}/celery/worker/worker.py`, 202],
    ["execute", `${PACKAGES}/celery/worker/request.py`, 381],
    ["__protected_call__", `${PACKAGES}/celery/app/trace.py`, 760],
  ],
  imports: [
    ["celery", 12],
    ["kombu", 6],
    ["pandas", 48],
  ],
};

const TORCH: Framework = {
  command: (app) => ["python", "-m", `${app}.serve`],
  dispatch: [
    ["serve_forever", `${LIBRARY}/asyncio/base_events.py`, 645],
    ["predict", "/srv/app/api.py", 58],
  ],
  imports: [
    ["torch", 190],
    ["transformers", 64],
    ["numpy", 22],
  ],
};

function importsOf({ imports }: Framework, app: string): DemoSite[] {
  return imports.map(([name, mib]) => ({
    stack: [
      ["<module>", `/srv/${app}/main.py`, 3],
      ["<module>", `${PACKAGES}/${name}/__init__.py`, 1],
      ["_compile_bytecode", `${LIBRARY}/importlib/_bootstrap_external.py`, 729],
    ],
    course: "settled" as const,
    bytes: mib * MIB,
    objectBytes: 410,
  }));
}

interface Plan {
  readonly name: string;
  readonly framework: Framework;
  readonly instances: number;
  readonly limitMib: number;
  /** `[function, file, line, MiB]` */
  readonly settled?: readonly (readonly [string, string, number, number])[];
  readonly fills?: readonly (readonly [string, string, number, number])[];
  readonly load: readonly (readonly [string, string, number, number])[];
  /** Days since each deploy, oldest first. */
  readonly deploys: readonly number[];
  readonly version: (release: number) => string;
  /** Sites that a release has besides those of the service. */
  readonly also?: (release: number) => readonly DemoSite[];
}

/** Where the code of a service runs: in its framework's dispatcher. */
function inService(
  { framework, name }: Pick<Plan, "framework" | "name">,
  frames: DemoStack,
): DemoStack {
  const app = appOf(name);
  return [
    ...framework.dispatch,
    ...frames.map(([call, file, line]) => [call, `/srv/${app}/${file}`, line] as const),
  ];
}

function appOf(name: string): string {
  return name.replaceAll("-", "_");
}

function serviceOf(plan: Plan): DemoService {
  const sitesOf = (
    rows: readonly (readonly [string, string, number, number])[] | undefined,
    course: Course,
  ) =>
    (rows ?? []).map(
      ([call, file, line, mib]): DemoSite => ({
        stack: inService(plan, [[call, file, line]]),
        course,
        bytes: mib * MIB,
        objectBytes: course === "load" ? 1_900 : 640,
      }),
    );
  const common = [
    ...importsOf(plan.framework, appOf(plan.name)),
    ...sitesOf(plan.settled, "settled"),
    ...sitesOf(plan.fills, "fills"),
    ...sitesOf(plan.load, "load"),
  ];
  return {
    name: plan.name,
    instances: plan.instances,
    limitBytes: plan.limitMib * MIB,
    command: plan.framework.command(appOf(plan.name)),
    releases: plan.deploys.map((daysAgo, release) => ({
      version: plan.version(release),
      daysAgo,
      sites: [...common, ...(plan.also?.(release) ?? [])],
    })),
  };
}

const counted = (prefix: string, first: number) => (release: number) =>
  `${prefix}.${first + release}.0`;

const CHECKOUT = { framework: FASTAPI, name: "checkout" };
const NOTIFICATIONS = { framework: FASTAPI, name: "notifications" };
const THUMBNAILS = { framework: CELERY, name: "thumbnails" };

/** Since 2.42.0 every instance keeps a price for each customer, no longer for each product. */
const PRICES: readonly DemoSite[] = [
  {
    stack: inService(CHECKOUT, [
      ["quote", "cart.py", 91],
      ["PriceTable.price_of", "prices.py", 48],
    ]),
    course: "fills",
    bytes: 38 * MIB,
    objectBytes: 720,
  },
  {
    stack: inService(CHECKOUT, [
      ["quote", "cart.py", 94],
      ["PriceTable.price_for", "prices.py", 73],
    ]),
    course: "fills",
    bytes: 196 * MIB,
    objectBytes: 830,
  },
];

/** Since 5.3.0 connections that a client closes stay subscribed. */
const SUBSCRIBERS: DemoSite = {
  stack: inService(NOTIFICATIONS, [
    ["websocket_endpoint", "stream.py", 37],
    ["Hub.subscribe", "hub.py", 112],
  ]),
  course: "leaks",
  bytes: 46 * MIB,
  objectBytes: 1_150,
  holder: { path: ["module notifications.hub", "SUBSCRIBERS"], type: "dict" },
};

/** In every version: the decoder's buffers are not freed after an image that is damaged. */
const DECODER: DemoSite = {
  stack: [
    ...inService(THUMBNAILS, [
      ["make_thumbnail", "tasks.py", 64],
      ["Decoder.open", "codecs.py", 29],
    ]),
    ["decode_frame", `${PACKAGES}/fastjpeg/_decoder.cpython-312-x86_64-linux-gnu.so`, 0],
  ],
  course: "leaks",
  bytes: 88 * MIB,
  objectBytes: 262_144,
  native: true,
  holder: "none",
};

const PLANS: readonly Plan[] = [
  {
    ...CHECKOUT,
    instances: 5,
    limitMib: 768,
    load: [
      ["quote", "cart.py", 88, 18],
      ["charge", "payments.py", 140, 9],
    ],
    deploys: [34, 19, 11, 3],
    version: counted("2", 39),
    also: (release) => PRICES.slice(release < 3 ? 0 : 1, release < 3 ? 1 : 2),
  },
  {
    ...NOTIFICATIONS,
    instances: 4,
    limitMib: 512,
    load: [["publish", "stream.py", 71, 12]],
    deploys: [40, 21, 9],
    version: counted("5", 1),
    also: (release) => (release < 2 ? [] : [SUBSCRIBERS]),
  },
  {
    ...THUMBNAILS,
    instances: 3,
    limitMib: 1024,
    load: [["make_thumbnail", "tasks.py", 58, 44]],
    deploys: [33, 25, 17, 6],
    version: counted("1", 12),
    also: () => [DECODER],
  },
  {
    name: "catalog",
    framework: DJANGO,
    instances: 6,
    limitMib: 640,
    fills: [["CategoryTree.load", "categories.py", 52, 85]],
    load: [["search", "views.py", 204, 26]],
    deploys: [31, 14, 5],
    version: counted("11", 6),
  },
  {
    name: "recommendations",
    framework: TORCH,
    instances: 2,
    limitMib: 4096,
    settled: [["Ranker.load", "model.py", 33, 860]],
    load: [["Ranker.score", "model.py", 71, 120]],
    deploys: [44, 16],
    version: counted("0", 31),
  },
  {
    name: "search",
    framework: FASTAPI,
    instances: 5,
    limitMib: 1024,
    settled: [["Index.open", "index.py", 41, 220]],
    load: [["Index.query", "index.py", 133, 35]],
    deploys: [32, 22, 12, 2],
    version: counted("3", 8),
  },
  {
    name: "cart",
    framework: FASTAPI,
    instances: 3,
    limitMib: 384,
    load: [["merge_carts", "carts.py", 66, 8]],
    deploys: [37, 13],
    version: counted("4", 0),
  },
  {
    name: "accounts",
    framework: DJANGO,
    instances: 3,
    limitMib: 512,
    load: [["profile", "views.py", 31, 11]],
    deploys: [36, 20, 7],
    version: counted("7", 2),
  },
  {
    name: "payments",
    framework: FASTAPI,
    instances: 3,
    limitMib: 384,
    load: [["authorize", "gateway.py", 88, 10]],
    deploys: [50, 18],
    version: counted("6", 4),
  },
  {
    name: "inventory",
    framework: FASTAPI,
    instances: 2,
    limitMib: 512,
    fills: [["StockCache.refresh", "stock.py", 59, 60]],
    load: [["reserve", "stock.py", 102, 7]],
    deploys: [35, 10],
    version: counted("2", 17),
  },
  {
    name: "orders",
    framework: DJANGO,
    instances: 4,
    limitMib: 512,
    load: [["list_orders", "views.py", 77, 22]],
    deploys: [33, 21, 8],
    version: counted("9", 1),
  },
  {
    name: "invoices",
    framework: CELERY,
    instances: 2,
    limitMib: 512,
    load: [["render_invoice", "tasks.py", 45, 31]],
    deploys: [60, 24],
    version: counted("1", 4),
  },
  {
    name: "mailer",
    framework: CELERY,
    instances: 2,
    limitMib: 384,
    load: [["send", "tasks.py", 28, 6]],
    deploys: [41, 15],
    version: counted("3", 3),
  },
  {
    name: "fraud-scoring",
    framework: TORCH,
    instances: 2,
    limitMib: 2048,
    settled: [["Scorer.load", "model.py", 21, 310]],
    load: [["Scorer.score", "model.py", 64, 40]],
    deploys: [39, 9],
    version: counted("0", 9),
  },
  {
    name: "reviews",
    framework: DJANGO,
    instances: 2,
    limitMib: 384,
    load: [["list_reviews", "views.py", 40, 9]],
    deploys: [34, 12],
    version: counted("2", 5),
  },
  {
    name: "shipping",
    framework: FASTAPI,
    instances: 2,
    limitMib: 384,
    fills: [["RateTable.load", "rates.py", 19, 34]],
    load: [["quote_rate", "rates.py", 57, 5]],
    deploys: [38, 17],
    version: counted("5", 7),
  },
  {
    name: "reports",
    framework: CELERY,
    instances: 1,
    limitMib: 1536,
    load: [["monthly_report", "tasks.py", 83, 240]],
    deploys: [42, 20],
    version: counted("1", 1),
  },
  {
    name: "gateway",
    framework: FASTAPI,
    instances: 4,
    limitMib: 384,
    load: [["forward", "proxy.py", 95, 14]],
    deploys: [31, 23, 15, 4],
    version: counted("8", 0),
  },
  {
    name: "sessions",
    framework: FASTAPI,
    instances: 2,
    limitMib: 512,
    fills: [["SessionStore.put", "store.py", 44, 120]],
    load: [["login", "views.py", 25, 4]],
    deploys: [45, 11],
    version: counted("2", 2),
  },
  {
    name: "feature-flags",
    framework: FASTAPI,
    instances: 2,
    limitMib: 256,
    load: [["evaluate", "flags.py", 61, 3]],
    deploys: [52, 26],
    version: counted("1", 8),
  },
];

export const DEMO_SERVICES: readonly DemoService[] = PLANS.map(serviceOf);
