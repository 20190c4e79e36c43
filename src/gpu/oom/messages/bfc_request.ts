/** The requested size in an exception of JAX or TensorFlow. Matched without white space if the text may be wrapped. */
import type { Bytes } from "../../../model/base/units.js";
import { bytesOf, squeeze } from "./message_sizes.js";

export interface BfcRequest {
  /** null: the text has an unknown element type or no size. */
  readonly bytes: Bytes | null;
  readonly device: number | null;
  /** TensorFlow's text. */
  readonly tensor: boolean;
  /** A request for host memory, not device memory. */
  readonly host: boolean;
}

export const EXHAUSTED =
  /RESOURCE_EXHAUSTED|ResourceExhaustedError|Resource exhausted:|XlaRuntimeError.{0,200}[Oo]ut of memory|Dst tensor is not initialized|Failed to allocate \d{1,20} bytes for new constant/;
export const TENSOR =
  /OOM when allocating tensor with shape\[([\d,\s]{0,400})\](?: and type (\w{1,24}))?(?: on \S{0,200}?(?:GPU|XPU):(\d{1,5}))?/;

const JAX_REQUEST =
  /[Oo]utofmemory(?:whiletryingtoallocate|allocating|tryingtoallocate)(\d{1,20}(?:\.\d{1,9})?)(bytes|[KMGT]i?B|B)/;
const JAX_DEVICE_REQUEST =
  /Failedtoallocaterequestfor[\d.]{1,20}[KMGT]?i?B\((\d{1,20})B\)(?:ondeviceordinal(\d{1,5}))?/;
const JAX_CONSTANT = /Failedtoallocate(\d{1,20})bytesfornewconstant/;
/** Messages without a size: an operation that TensorFlow ran eagerly, or a copy to the device. */
const WITHOUT_SIZE = /failed to allocate memory|Dst tensor is not initialized/;
const HOST = /device:CPU:\d|by allocator (?:cpu|mklcpu|\w{0,12}host_bfc)\b/;

/** Sizes of TensorFlow's element types; the size of a string or resource is unknown. */
const DTYPE_BYTES: Readonly<Record<string, number>> = {
  ...{ float: 4, double: 8, half: 2, bfloat16: 2, bool: 1 },
  ...{ int8: 1, int16: 2, int32: 4, int64: 8, uint8: 1, uint16: 2, uint32: 4, uint64: 8 },
  ...{ complex64: 8, complex128: 16, qint8: 1, quint8: 1, qint16: 2, quint16: 2, qint32: 4 },
  ...{ float8_e4m3fn: 1, float8_e5m2: 1, float8_e4m3b11fnuz: 1, float8_e4m3fnuz: 1 },
  ...{ float8_e5m2fnuz: 1 },
};
/** The type assumed for texts of versions before 1.5, which name none. */
const USUAL_TYPE = "float";

/** null for any other text, or if it is truncated before the size. */
export function requestIn(text: string): BfcRequest | null {
  const tensor = TENSOR.exec(text);
  const host = HOST.test(text);
  if (tensor !== null) {
    const [, sides = "", type = USUAL_TYPE, device] = tensor;
    const elements = sides
      .split(",")
      .reduce((product, side) => product * Number(side.trim() || 1), 1);
    const size = DTYPE_BYTES[type];
    const bytes = size === undefined ? null : elements * size;
    return { bytes, device: numberOf(device), tensor: true, host };
  }
  const squeezed = squeeze(text);
  const onDevice = JAX_DEVICE_REQUEST.exec(squeezed);
  if (onDevice !== null) {
    return { bytes: Number(onDevice[1]), device: numberOf(onDevice[2]), tensor: false, host };
  }
  const constant = JAX_CONSTANT.exec(squeezed);
  if (constant !== null) {
    return { bytes: Number(constant[1]), device: null, tensor: false, host };
  }
  const plain = JAX_REQUEST.exec(squeezed);
  if (plain !== null) {
    const [, figure = "", unit = ""] = plain;
    return { bytes: bytesOf(figure, unit), device: null, tensor: false, host };
  }
  return WITHOUT_SIZE.test(text) ? { bytes: null, device: null, tensor: true, host } : null;
}

function numberOf(figure: string | undefined): number | null {
  return figure === undefined ? null : Number(figure);
}
