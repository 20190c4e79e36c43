/**
 * Headers of safetensors files:
 *
 *   8 bytes   length of the header, little-endian
 *   n bytes   JSON: {"name": {"dtype": "BF16", "shape": [4096, 4096], "data_offsets": [0, 33554432]}, "__metadata__": {...}}
 *   the rest  tensors, which are never read
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { tooLarge } from "../../model/errors/errors.js";
import { notAModel } from "../../model/errors/plan_errors.js";
import { readJson, readPiece, requireWhole } from "./bounded.js";

export interface WeightTensor {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: number;
}

/** safetensors' own bound. */
const LARGEST_HEADER = 100 * 2 ** 20;
const MOST_FILES = 2000;

/** The tensors of one file. @throws TidemarkError TM-E004, TM-E008, TM-E085 */
export function safetensorsHeader(path: string): WeightTensor[] {
  const first = readPiece(path, 0, 8);
  if (first.length < 8) {
    throw notAModel(path, "it is cut off within its first 8 bytes");
  }
  const length = Number(first.readBigUInt64LE(0));
  if (length > LARGEST_HEADER) {
    throw tooLarge(`the header of ${path}`, "100 MiB, that of safetensors");
  }
  if (8 + length > statSync(path).size) {
    throw notAModel(path, "it is cut off within its header");
  }
  let header: unknown;
  try {
    header = JSON.parse(readPiece(path, 8, length).toString("utf8"));
  } catch {
    throw notAModel(path, "its header is not JSON");
  }
  if (typeof header !== "object" || header === null) {
    throw notAModel(path, "its header is not a JSON object");
  }
  const tensors = Object.entries(header)
    .filter(([name]) => name !== "__metadata__")
    .map(([name, value]) => tensorOf(path, name, value));
  // Tensors lie one after the other, without gaps.
  requireWhole(
    path,
    8 + length,
    tensors.reduce((sum, { bytes }) => sum + bytes, 0),
  );
  return tensors;
}

function tensorOf(path: string, name: string, value: unknown): WeightTensor {
  const { dtype, shape, data_offsets: offsets } = (value ?? {}) as Record<string, unknown>;
  const isWhole = (each: unknown): each is number =>
    Number.isSafeInteger(each) && (each as number) >= 0;
  if (
    typeof dtype !== "string" ||
    !Array.isArray(shape) ||
    shape.length > 8 ||
    !shape.every(isWhole) ||
    !Array.isArray(offsets) ||
    !isWhole(offsets[0]) ||
    !isWhole(offsets[1]) ||
    offsets[1] < offsets[0]
  ) {
    throw notAModel(path, `tensor ${name.slice(0, 80)} has no valid shape or offsets`);
  }
  return { name, dtype, shape, bytes: offsets[1] - offsets[0] };
}

/** All tensors of a folder: of its index, or of each file. Null where there is none; a sentence where shards are missing. */
export function safetensorsOf(
  folder: string,
  names: readonly string[],
): WeightTensor[] | string | null {
  const index = names.find((name) => name.endsWith(".safetensors.index.json"));
  let files = names.filter((name) => name.endsWith(".safetensors"));
  if (index !== undefined) {
    const map = readJson(join(folder, index)).weight_map;
    if (typeof map !== "object" || map === null) {
      throw notAModel(join(folder, index), "it has no weight_map");
    }
    const listed = [...new Set(Object.values(map).map(String))];
    if (listed.some((name) => name.includes("/") || name.includes("\0"))) {
      throw notAModel(join(folder, index), "it names a file outside of its folder");
    }
    // Shards that were not downloaded: what is there does not describe the model.
    const missing = listed.filter((name) => !names.includes(name));
    if (missing.length > 0) {
      return `${missing.length} of the ${listed.length} weight files that ${index} lists ${missing.length === 1 ? "is" : "are"} missing`;
    }
    files = listed;
  } else if (files.length > 1) {
    // Beside the weights diffusers may leave the same in 16 bit: "diffusion_pytorch_model.fp16.safetensors".
    files = files.filter(
      (name) => !/^(?:adapter|consolidated|optimizer)/.test(name) && !isVariant(name, files),
    );
  }
  if (files.length === 0 || files.length > MOST_FILES) {
    return null;
  }
  return files.flatMap((name) => safetensorsHeader(join(folder, name)));
}

function isVariant(name: string, files: readonly string[]): boolean {
  const plain = name.replace(/\.(?:fp16|bf16|non_ema)\.safetensors$/, ".safetensors");
  return plain !== name && files.includes(plain);
}
