/**
 * The store's tables, the same for every store. Times are ms since 1970, sizes bytes; ids are those
 * of content_ids.ts. Live figures are of the moment `ts_ms`; allocated ones since the start.
 */
export const TABLES = {
  series: `series_id BIGINT, service VARCHAR, host VARCHAR, pid BIGINT, parent_pid BIGINT,
           command VARCHAR[], python VARCHAR, started_ms DOUBLE, ended_ms DOUBLE, profiled BOOLEAN`,
  metrics: "series_id BIGINT, ts_ms DOUBLE, name VARCHAR, value DOUBLE",
  frames: 'frame_id BIGINT, "function" VARCHAR, file VARCHAR, line INTEGER, kind VARCHAR',
  stacks: "stack_id BIGINT, frame_ids BIGINT[]",
  labels: "label_id BIGINT, keys VARCHAR[], vals VARCHAR[]",
  profiles: `profile_id BIGINT, series_id BIGINT, ts_ms DOUBLE, duration_ms DOUBLE, kind VARCHAR,
             period_bytes DOUBLE`,
  samples: `day DATE, series_id BIGINT, ts_ms DOUBLE, profile_id BIGINT, stack_id BIGINT,
            thread VARCHAR, label_id BIGINT, domain VARCHAR, live_objects DOUBLE, live_bytes DOUBLE,
            live_variance DOUBLE, peak_objects DOUBLE, peak_bytes DOUBLE, allocated_objects DOUBLE,
            allocated_bytes DOUBLE`,
  events: "series_id BIGINT, ts_ms DOUBLE, kind VARCHAR, body VARCHAR, value DOUBLE",
} as const;

export type TableName = keyof typeof TABLES;
export const TABLE_NAMES = Object.keys(TABLES) as TableName[];
