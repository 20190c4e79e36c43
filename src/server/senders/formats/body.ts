/** The bodies of requests with profiles: bounded decompression, and the parts of a form. */
import { gunzipSync, inflateSync } from "node:zlib";
import { Decompress } from "fzstd";
import { tooLarge } from "../../../model/errors/errors.js";
import { reasonOf } from "../../../model/errors/reason.js";
import { type LimitName, malformed, PROFILE_LIMITS, withinLimit } from "./received_profile.js";

const ZSTD_MAGIC = 0xfd2fb528;
const GZIP_MAGIC = 0x1f8b;
/** fzstd allocates a window of this size before it sees any content. */
const MOST_ZSTD_WINDOW = 8 << 20;

/** A body by its Content-Encoding. Throws TidemarkError. */
export function decodedBody(body: Buffer, encoding: string | undefined): Buffer {
  const limit = "request-bytes";
  withinLimit(limit, body.length);
  switch ((encoding ?? "identity").trim().toLowerCase()) {
    case "":
    case "identity":
      return body;
    case "gzip":
      return inflated(() => gunzipSync(body, bound(limit)), limit);
    case "deflate":
      return inflated(() => inflateSync(body, bound(limit)), limit);
    case "zstd":
      return inflated(() => unzstd(body, limit), limit);
    default:
      return malformed("its Content-Encoding is not gzip, deflate or zstd");
  }
}

/** A profile that may be compressed: by gzip as pprof's are, or by zstd as Datadog's are. Throws TidemarkError. */
export function plainProfile(bytes: Buffer): Buffer {
  const limit = "profile-bytes";
  withinLimit(limit, bytes.length);
  if (bytes.length >= 2 && bytes.readUInt16BE(0) === GZIP_MAGIC) {
    return inflated(() => gunzipSync(bytes, bound(limit)), limit);
  }
  if (bytes.length >= 4 && bytes.readUInt32LE(0) === ZSTD_MAGIC) {
    return inflated(() => unzstd(bytes, limit), limit);
  }
  return bytes;
}

/** The parts of a multipart form by name. Throws TidemarkError. */
export async function formParts(
  body: Buffer,
  contentType: string,
): Promise<ReadonlyMap<string, { readonly bytes: Buffer; readonly file: string }>> {
  const parts = new Map<string, { bytes: Buffer; file: string }>();
  let form: FormData;
  try {
    form = await new Response(new Uint8Array(body), {
      headers: { "content-type": contentType },
    }).formData();
  } catch (error) {
    return malformed(`its multipart form is broken (${reasonOf(error).message})`);
  }
  for (const [name, part] of form) {
    const bytes =
      typeof part === "string" ? Buffer.from(part) : Buffer.from(await part.arrayBuffer());
    parts.set(name, { bytes, file: typeof part === "string" ? "" : part.name });
  }
  return parts;
}

function bound(limit: LimitName): { maxOutputLength: number } {
  return { maxOutputLength: PROFILE_LIMITS[limit] };
}

function inflated(inflate: () => Buffer, limit: LimitName): Buffer {
  try {
    return inflate();
  } catch (error) {
    const { code, message } = reasonOf(error);
    if (code === "ERR_BUFFER_TOO_LARGE") {
      throw tooLarge("the profile, inflated,", `${limit} = ${PROFILE_LIMITS[limit] >> 20} MiB`);
    }
    return malformed(`it does not inflate (${message})`);
  }
}

class TooLong extends Error {
  readonly code = "ERR_BUFFER_TOO_LARGE";
}

function unzstd(bytes: Buffer, limit: LimitName): Buffer {
  if (zstdWindow(bytes) > MOST_ZSTD_WINDOW) {
    throw new TooLong();
  }
  const chunks: Uint8Array[] = [];
  let length = 0;
  const stream = new Decompress((chunk) => {
    length += chunk.length;
    if (length > PROFILE_LIMITS[limit]) {
      throw new TooLong();
    }
    chunks.push(chunk.slice());
  });
  const step = 16 << 10;
  for (let at = 0; at < bytes.length; at += step) {
    stream.push(bytes.subarray(at, at + step), at + step >= bytes.length);
  }
  return Buffer.concat(chunks);
}

/** Window size that the first frame announces (RFC 8878, 3.1.1.1). */
function zstdWindow(bytes: Buffer): number {
  const descriptor = bytes[4] ?? 0;
  if ((descriptor & 0x20) === 0) {
    const window = bytes[5] ?? 0;
    const base = 2 ** (10 + (window >> 3));
    return base + (base / 8) * (window & 7);
  }
  // A frame of a single segment: its window is its content, whose size follows.
  const at = 5 + ([0, 1, 2, 4][descriptor & 3] ?? 0);
  switch (descriptor >> 6) {
    case 0:
      return bytes[at] ?? 0;
    case 1:
      return bytes.length < at + 2 ? 0 : bytes.readUInt16LE(at) + 256;
    case 2:
      return bytes.length < at + 4 ? 0 : bytes.readUInt32LE(at);
    default:
      return bytes.length < at + 8 ? 0 : Number(bytes.readBigUInt64LE(at));
  }
}
