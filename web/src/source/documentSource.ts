import type { GpuDiffPageDocument, GpuPageDocument } from "../../../src/model/gpu_page.js";
import type { HeapDiffPageDocument, HeapPageDocument } from "../../../src/model/heap_page.js";
import type { ReportDocument } from "../../../src/model/report.js";

/** Told apart by their `schema`. */
export type PageDocument =
  | ReportDocument
  | GpuPageDocument
  | GpuDiffPageDocument
  | HeapPageDocument
  | HeapDiffPageDocument;

/** Where the app gets what it shows: today the page itself, later a server. */
export interface DocumentSource {
  /** @throws Error whose message is one line for people. */
  read(): Promise<PageDocument>;
}
