/** One hue per category and a shade by site, so that neighbours of one category can be distinguished. */
import { itemAt } from "../../../../src/model/base/columns.js";
import { GPU_CATEGORIES } from "../../../../src/model/documents/gpu/gpu_page.js";
import type { Theme } from "../../theme/theme.js";

/** Hue and saturation, in the order of GPU_CATEGORIES. */
const TONES: readonly (readonly [number, number])[] = [
  [205, 10],
  [214, 55],
  [28, 70],
  [262, 42],
  [172, 45],
  [330, 48],
  [48, 62],
  [95, 35],
  [0, 45],
];
const SHADES = 6;

export interface GpuPalette {
  /** CSS by category * SHADES + shade. */
  readonly css: readonly string[];
  /** The same as little-endian RGBA pixels. */
  readonly pixels: Uint32Array;
  /** Colours of search matches and of everything else. */
  readonly match: number;
  readonly matchCss: string;
  readonly faded: number;
  readonly fadedCss: string;
  readonly background: number;
}

export function gpuPalette(theme: Theme): GpuPalette {
  const css: string[] = [];
  const pixels = new Uint32Array(GPU_CATEGORIES.length * SHADES);
  TONES.forEach(([hue, saturation], category) => {
    for (let shade = 0; shade < SHADES; shade++) {
      const lightness = (theme === "dark" ? 34 : 58) + shade * 4;
      css.push(`hsl(${hue} ${saturation}% ${lightness}%)`);
      pixels[category * SHADES + shade] = pixelOf(hue, saturation / 100, lightness / 100);
    }
  });
  return theme === "dark"
    ? {
        css,
        pixels,
        match: 0xff2fb6d9,
        matchCss: "#d9b62f",
        faded: 0xff3b3026,
        fadedCss: "#26303b",
        background: 0xff201b14,
      }
    : {
        css,
        pixels,
        match: 0xff1fb4e8,
        matchCss: "#e8b41f",
        faded: 0xffe9e4e0,
        fadedCss: "#e0e4e9",
        background: 0xffffffff,
      };
}

export function colourOf(category: number, stack: number): number {
  return category * SHADES + ((Math.imul(stack, 0x9e3779b1) >>> 16) % SHADES);
}

function pixelOf(hue: number, saturation: number, lightness: number): number {
  const part = (offset: number) => {
    const k = (offset + hue / 30) % 12;
    const spread = saturation * Math.min(lightness, 1 - lightness);
    return Math.round(255 * (lightness - spread * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return (0xff000000 | (part(4) << 16) | (part(8) << 8) | part(0)) >>> 0;
}

/** The colour of a category in text. */
export function categoryColour({ css }: GpuPalette, category: number): string {
  return itemAt(css, category * SHADES + Math.floor(SHADES / 2));
}
