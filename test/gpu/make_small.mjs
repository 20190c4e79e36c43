/** Writes the snapshot in test/data/gpu/small.pickle.zst: `node test/gpu/make_small.mjs | zstd -19`. */
import { pickle } from "./pickle_writer.mjs";
import { snapshotOf } from "./snapshot_file.mjs";
import { randomWorkload } from "./workload.mjs";

const { allocator } = randomWorkload(11, { events: 400 });
process.stderr.write(`${JSON.stringify(allocator.totals)}\n`);
process.stdout.write(pickle(snapshotOf([allocator], "plain")));
