/** A colour for each type, the same on every page; mixed types are grey. */
import type { Theme } from "../theme/theme.js";

const HUES = 18;

interface TypeColour {
  readonly fill: string;
  /** Background of the contents. */
  readonly ground: string;
}

export function typeColour(type: string | null, theme: Theme): TypeColour {
  const light = theme === "light";
  if (type === null) {
    return light
      ? { fill: "hsl(205 10% 86%)", ground: "hsl(205 14% 93%)" }
      : { fill: "hsl(205 10% 27%)", ground: "hsl(205 12% 17%)" };
  }
  let hash = 2166136261;
  for (let n = 0; n < type.length; n++) {
    hash = Math.imul(hash ^ type.charCodeAt(n), 16777619);
  }
  const hue = ((hash >>> 8) % HUES) * (360 / HUES);
  return light
    ? { fill: `hsl(${hue} 48% 80%)`, ground: `hsl(${hue} 40% 92%)` }
    : { fill: `hsl(${hue} 28% 34%)`, ground: `hsl(${hue} 22% 18%)` };
}
