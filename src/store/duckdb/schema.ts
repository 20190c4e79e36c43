/** The comment of the table `profiles` in a database, and the property `writer` of a Parquet file. */
export const WRITER_MARK = "written by Tidemark";

/**
 * The store's tables, in every store the same. Ids are 64-bit hashes of content (content_ids.ts),
 * times ms since 1970, sizes bytes. Live figures are gauges of their moment; allocated ones are what
 * came since the profile before, so that they sum.
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
    /** 0: it lives, or its end was not seen. */
    ended_ms: "BIGINT",
    /** The series of the program that was recorded; its own for that program, another for its children. */
    root_id: "UBIGINT",
    /** When its recording began: of a process that was attached to, after its start. */
    recorded_ms: "BIGINT",
    /** Name of the stream that it came with; "" in an export. */
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
  /** `duration_ms`: since the profile before it, which is what its allocated figures cover. `samples_id`: the profile
   * whose samples stand for this one: its own, or one before it that differs by less than its standard error.
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
  /** `age_bucket` b: 2^(b-1) to 2^b ms old; 0 where nothing lives. A site has one row for each bucket it
   * has bytes in; the first of them carries its allocated and peak figures. */
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
