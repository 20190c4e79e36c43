/**
 * The flame graph's colours. The number of a fill encodes its meaning:
 *
 *   kind mode  kind * SHADES + shade by file      (kinds: python, native, mapped, mark)
 *   file mode  FILE_BASE + hue by file
 *   diff mode  DIFF_BASE + step; the middle step is "unchanged"
 */
import type { Theme } from "../theme/theme.js";
import type { FlamePalette } from "./draw.js";

export const SHADES = 5;
export const KINDS = { python: 0, native: 1, mapped: 2, mark: 3 } as const;
export const FILE_BASE = 4 * SHADES;
export const FILE_HUES = 24;
export const DIFF_BASE = FILE_BASE + FILE_HUES;
/** Steps on each side of "unchanged". */
export const DIFF_STEPS = 8;

interface Tone {
  readonly hue: number;
  readonly saturation: number;
  readonly lightness: number;
}

const TONES: Record<Theme, readonly Tone[]> = {
  light: [
    { hue: 189, saturation: 44, lightness: 76 },
    { hue: 34, saturation: 72, lightness: 77 },
    { hue: 262, saturation: 42, lightness: 83 },
    { hue: 205, saturation: 10, lightness: 86 },
  ],
  dark: [
    { hue: 190, saturation: 42, lightness: 29 },
    { hue: 31, saturation: 46, lightness: 32 },
    { hue: 262, saturation: 26, lightness: 39 },
    { hue: 205, saturation: 10, lightness: 27 },
  ],
};

const SURROUNDINGS: Record<Theme, Omit<FlamePalette, "fills" | "faded">> = {
  light: {
    match: "#f0cf3c",
    text: "#17252e",
    fadedText: "#6b7a83",
    matchText: "#231d00",
    outline: "#0b2530",
    background: "#ffffff",
  },
  dark: {
    match: "#d9b62f",
    text: "#e8eff1",
    fadedText: "#7d8b93",
    matchText: "#1a1600",
    outline: "#f4fbfc",
    background: "#141b20",
  },
};

const palettes = new Map<Theme, FlamePalette>();

export function flamePalette(theme: Theme): FlamePalette {
  let palette = palettes.get(theme);
  if (!palette) {
    const colours = colourNumbers(theme);
    palette = {
      ...SURROUNDINGS[theme],
      fills: colours.map((tone) => css(tone)),
      faded: colours.map((tone) =>
        css({
          hue: tone.hue,
          saturation: tone.saturation * 0.3,
          lightness: theme === "light" ? 93 : 17,
        }),
      ),
    };
    palettes.set(theme, palette);
  }
  return palette;
}

function colourNumbers(theme: Theme): Tone[] {
  const light = theme === "light";
  const kinds = TONES[theme].flatMap((tone) =>
    Array.from({ length: SHADES }, (_, shade) => ({
      hue: tone.hue + (shade - (SHADES - 1) / 2) * 5,
      saturation: tone.saturation,
      lightness: tone.lightness + (shade - (SHADES - 1) / 2) * (light ? 2.2 : 1.6),
    })),
  );
  const files = Array.from({ length: FILE_HUES }, (_, i) => ({
    hue: (i * 360) / FILE_HUES,
    saturation: light ? 48 : 30,
    lightness: light ? 80 : 33,
  }));
  const differences = Array.from({ length: 2 * DIFF_STEPS + 1 }, (_, i) => {
    const strength = (i - DIFF_STEPS) / DIFF_STEPS;
    const amount = Math.abs(strength);
    return {
      hue: strength >= 0 ? 14 : 205,
      saturation: (light ? 12 : 8) + amount * (light ? 66 : 50),
      lightness: light ? 90 - amount * 25 : 24 + amount * 17,
    };
  });
  return [...kinds, ...files, ...differences];
}

function css({ hue, saturation, lightness }: Tone): string {
  return `hsl(${hue.toFixed(0)} ${saturation.toFixed(0)}% ${lightness.toFixed(1)}%)`;
}
