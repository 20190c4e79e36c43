/** The server's own health, for `/metrics`. */
import type { Store } from "../../store/index.js";
import type { MetricFamily } from "./exposition.js";

/** Counts answered requests. */
export class RequestCounts {
  readonly #answers = new Map<string, number>();
  #seconds = 0;

  count(status: number, ms: number): void {
    const code = `${Math.floor(status / 100)}xx`;
    this.#answers.set(code, (this.#answers.get(code) ?? 0) + 1);
    this.#seconds += ms / 1000;
  }

  families(): MetricFamily[] {
    return [
      {
        name: "tidemark_server_requests_total",
        help: "Requests that were answered, by the class of their status.",
        type: "counter",
        values: [...this.#answers].map(([code, value]) => ({ labels: { code }, value })),
      },
      one(
        "tidemark_server_request_seconds_total",
        "Time of all requests.",
        "counter",
        this.#seconds,
      ),
    ];
  }
}

export async function serverMetrics(store: Store, counts: RequestCounts): Promise<MetricFamily[]> {
  const { bytes, oldestMs } = await store.use();
  const { user, system } = process.cpuUsage();
  const startedSeconds = Date.now() / 1000 - process.uptime();
  return [
    ...counts.families(),
    one("tidemark_server_store_bytes", "Size of the database.", "gauge", bytes),
    ...(oldestMs === null
      ? []
      : [
          one(
            "tidemark_server_oldest_data_timestamp_seconds",
            "Start of the oldest day that is kept.",
            "gauge",
            oldestMs / 1000,
          ),
        ]),
    one("process_resident_memory_bytes", "RSS of the server.", "gauge", process.memoryUsage.rss()),
    one("process_cpu_seconds_total", "CPU time of the server.", "counter", (user + system) / 1e6),
    one(
      "process_start_time_seconds",
      "Start of the server, in seconds since 1970.",
      "gauge",
      Math.round(startedSeconds),
    ),
  ];
}

function one(name: string, help: string, type: MetricFamily["type"], value: number): MetricFamily {
  return { name, help, type, values: [{ labels: {}, value }] };
}
