/** The comment of the table `profiles` in a database, and the property `writer` of a Parquet file. */
export const WRITER_MARK = "written by Tidemark";

/**
 * The store's tables, the same in every store. Ids are 64-bit hashes of content (content_ids.ts), times are in ms since
1970, sizes in bytes. Live figures are gauges of their moment; allocated figures cover the time since the previous
profile, so they can be summed.
 */
export const TABLES = {
  series: {
    series_id: "UBIGINT",
    tenant: "VARCHAR",
    service: "VARCHAR",
    version: "VARCHAR",
    env: "VARCHAR",
    host: "VARCHAR",
    pod: "VARCHAR",
    container: "VARCHAR",
    pid: "INTEGER",
    started_ms: "BIGINT",
    gpu: "VARCHAR",
    label_keys: "VARCHAR[]",
    label_vals: "VARCHAR[]",
    namespace: "VARCHAR",
    workload: "VARCHAR",
    /** 0 while it runs, or if its end was not seen. */
    ended_ms: "BIGINT",
    /** The series of the recorded program: its own for that program, another one for its children. */
    root_id: "UBIGINT",
    /** When its recording began; after the start for an attached process. */
    recorded_ms: "BIGINT",
    /** Name of the stream that it arrived in; "" in an export. */
    stream: "VARCHAR",
  },
  metrics: { series_id: "UBIGINT", ts_ms: "BIGINT", name: "VARCHAR", value: "DOUBLE" },
  frames: {
    frame_id: "UBIGINT",
    function: "VARCHAR",
    file: "VARCHAR",
    line: "INTEGER",
    kind: "VARCHAR",
  },
  /** Leaf first. */
  stacks: { stack_id: "UBIGINT", frame_ids: "UBIGINT[]" },
  labels: { label_id: "UBIGINT", keys: "VARCHAR[]", vals: "VARCHAR[]" },
  /** `duration_ms`: the time since the previous profile, which its allocated figures cover. `samples_id`: the profile whose
samples this one uses: its own, or an earlier one that differs by less than its standard error.
   * `carry_ms`: how long it holds if no other follows. */
  profiles: {
    profile_id: "UBIGINT",
    series_id: "UBIGINT",
    ts_ms: "BIGINT",
    duration_ms: "BIGINT",
    kind: "VARCHAR",
    period_bytes: "DOUBLE",
    live_bytes: "DOUBLE",
    allocated_bytes: "DOUBLE",
    samples_id: "UBIGINT",
    carry_ms: "BIGINT",
  },
  /** `age_bucket` b: 2^(b-1) to 2^b ms old; 0 if nothing is live. A site has one row for each bucket in which it has bytes;
the first of them has its allocated and peak figures. */
  samples: {
    day: "DATE",
    series_id: "UBIGINT",
    ts_ms: "BIGINT",
    profile_id: "UBIGINT",
    stack_id: "UBIGINT",
    thread: "VARCHAR",
    label_id: "UBIGINT",
    age_bucket: "INTEGER",
    live_objects: "DOUBLE",
    live_bytes: "DOUBLE",
    live_variance: "DOUBLE",
    allocated_objects: "DOUBLE",
    allocated_bytes: "DOUBLE",
    domain: "VARCHAR",
    peak_bytes: "DOUBLE",
  },
  events: {
    series_id: "UBIGINT",
    ts_ms: "BIGINT",
    kind: "VARCHAR",
    severity: "VARCHAR",
    body: "VARCHAR",
  },
  artifacts: {
    artifact_id: "UBIGINT",
    series_id: "UBIGINT",
    ts_ms: "BIGINT",
    kind: "VARCHAR",
    bytes: "BIGINT",
    body: "BLOB",
  },
} as const;

export type TableName = keyof typeof TABLES;
export const TABLE_NAMES = Object.keys(TABLES) as TableName[];

/** A value of a column: ids are bigint. */
export type ColumnValue = string | number | bigint | readonly string[] | readonly bigint[];

/** Takes one row of any table but samples: a value for each column of the table, in its order. */
export type AddRow = (table: Exclude<TableName, "samples">, ...values: ColumnValue[]) => void;
