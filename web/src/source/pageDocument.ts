/** The document that src/cli/files/report_page.ts put into the page: base64 of zlib of columns. */
import { decodeColumns } from "../../../src/model/documents/columns.js";
import {
  GPU_DIFF_PAGE_SCHEMA,
  GPU_PAGE_SCHEMA,
  type GpuDiffPageDocument,
  type GpuPageDocument,
} from "../../../src/model/documents/gpu/gpu_page.js";
import {
  HEAP_DIFF_PAGE_SCHEMA,
  HEAP_PAGE_SCHEMA,
  type HeapDiffPageDocument,
  type HeapPageDocument,
} from "../../../src/model/documents/heap/heap_page.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import { PLAN_PAGE_SCHEMA, type PlanPageDocument } from "../../../src/plan/page_document.js";

/** The documents that a page can show; their `schema` distinguishes them. */
export type PageDocument =
  | ReportDocument
  | GpuPageDocument
  | GpuDiffPageDocument
  | HeapPageDocument
  | HeapDiffPageDocument
  | PlanPageDocument;

const SCHEMA = "tidemark.report/1";
const SCHEMAS = [
  SCHEMA,
  GPU_PAGE_SCHEMA,
  GPU_DIFF_PAGE_SCHEMA,
  HEAP_PAGE_SCHEMA,
  HEAP_DIFF_PAGE_SCHEMA,
  PLAN_PAGE_SCHEMA,
];
/** A multiple of 4, so that each piece of base64 can be decoded separately. */
const PIECE_CHARACTERS = 4 * 256 * 1024;

/** @throws Error with a message of one line for users. */
export async function readPageDocument(): Promise<PageDocument> {
  const holder = document.getElementById("tidemark-document");
  if (holder === null) {
    throw new Error(
      "This page contains no recording; write one with: tidemark report RECORDING -o FILE.html",
    );
  }
  const text = (holder.textContent ?? "").trim();
  holder.remove(); // lets the browser free the text
  let bytes: Uint8Array;
  try {
    bytes = await inflate(fromBase64(text));
  } catch {
    throw new Error(
      "The recording in this page is damaged (cut off or changed); write it again with: tidemark report",
    );
  }
  const value = decodeColumns(bytes, "the recording in this page") as { schema?: unknown } | null;
  const schema = typeof value === "object" && value !== null ? String(value.schema) : "";
  if (!SCHEMAS.includes(schema)) {
    throw new Error(
      `The recording in this page is of schema "${schema.slice(0, 40)}"; this page reads ${SCHEMA}`,
    );
  }
  return value as unknown as PageDocument;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer>[] {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for (let from = 0; from < text.length; from += PIECE_CHARACTERS) {
    const binary = atob(text.slice(from, from + PIECE_CHARACTERS));
    const piece = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) {
      piece[i] = binary.charCodeAt(i);
    }
    pieces.push(piece);
  }
  return pieces;
}

async function inflate(pieces: Uint8Array<ArrayBuffer>[]): Promise<Uint8Array> {
  const stream = new Blob(pieces).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
