/** Formulas that multiply out to the bytes of their row: "6.979e9 parameters x 0.5625 B + 1.051e9 x 2 B / 8". */
import type { Bytes } from "../../model/base/units.js";

/** Parameters of one width that are divided alike. */
export interface Product {
  readonly elements: number;
  /** Of one element, before the division. */
  readonly bytes: Bytes;
  readonly divisor: number;
}

interface Counted {
  readonly elements: number;
}

/** Products that are named; the rest has a mean. */
const NAMED = 3;

/** The largest first. @param bytesOf of all elements of one parameter, before the division */
export function productsOf<Each extends Counted>(
  parameters: readonly Each[],
  bytesOf: (each: Each) => Bytes,
  divisorOf: (each: Each) => number = () => 1,
): Product[] {
  const groups = new Map<string, Product>();
  for (const each of parameters) {
    const all = bytesOf(each);
    if (all > 0 && each.elements > 0) {
      const divisor = divisorOf(each);
      const bytes = Number((all / each.elements).toPrecision(8));
      add(groups, `${bytes} ${divisor}`, { elements: each.elements, bytes, divisor });
    }
  }
  const sorted = [...groups.values()].sort((a, b) => sizeOf(b) - sizeOf(a));
  const rest = new Map<string, Product>();
  for (const product of sorted.slice(NAMED)) {
    add(rest, `${product.divisor}`, product);
  }
  return [...sorted.slice(0, NAMED), ...rest.values()];
}

function add(groups: Map<string, Product>, key: string, added: Product): void {
  const known = groups.get(key) ?? { ...added, elements: 0 };
  const elements = known.elements + added.elements;
  const bytes = (known.elements * known.bytes + added.elements * added.bytes) / elements;
  groups.set(key, { ...added, elements, bytes });
}

function sizeOf({ elements, bytes, divisor }: Product): Bytes {
  return (elements * bytes) / divisor;
}

/** @param share of the elements of each product */
export function productWords(products: readonly Product[], what: string, share = 1): string {
  return products
    .map(({ elements, bytes, divisor }, index) => {
      const each = Number(bytes.toPrecision(5));
      return `${countedParameters(elements * share)}${index === 0 ? ` ${what}` : ""} x ${each} B${divisor === 1 ? "" : ` / ${divisor}`}`;
    })
    .join(" + ");
}

/** Four digits: "8.030e9", "20.97e6", "512". */
export function countedParameters(elements: number): string {
  const digits = (value: number): string =>
    value.toPrecision(Math.max(4, Math.ceil(Math.log10(value))));
  return elements >= 1e9
    ? `${digits(elements / 1e9)}e9`
    : elements >= 1e6
      ? `${digits(elements / 1e6)}e6`
      : String(Math.round(elements));
}
