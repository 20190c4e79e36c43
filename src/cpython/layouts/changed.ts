import type { PythonLayout } from "./layout.js";

/** The fields of a table that differ from those of another one; `published` is complete. */
type LayoutChanges = Pick<PythonLayout, "version" | "debug"> & {
  readonly [Group in keyof PythonLayout]?: Partial<PythonLayout[Group]> | PythonLayout[Group];
};

/** The complete table: `base` with the changed fields in place of its own. */
export function changed(base: PythonLayout, changes: LayoutChanges): PythonLayout {
  const { version, debug, published = base.published, ...groups } = changes;
  const merged = Object.entries(groups).map(([name, fields]) => [
    name,
    { ...(base[name as keyof typeof groups] as object), ...fields },
  ]);
  return { ...base, ...Object.fromEntries(merged), version, debug, published } as PythonLayout;
}
