/**
 * A step of a holder's path in plain words: "field of numpy.ndarray" is "inside a numpy.ndarray", "dict[...]" is
 * "a value of a dict", and "list[...]" is "an item of a list". Other steps are names: "module app", ".rows".
 */
export function stepText(step: string): string {
  const [, type] = /^field of (.+)$/.exec(step) ?? [];
  if (type !== undefined) {
    return `inside ${withArticle(type)}`;
  }
  const [, container] = /^([\w.]+)\[\.\.\.\]$/.exec(step) ?? [];
  if (container === undefined) {
    return step;
  }
  return `${/dict$/i.test(container) ? "a value" : "an item"} of ${withArticle(container)}`;
}

/** "module app → df → ._mgr → inside a pandas.core.internals.managers.BlockManager" */
export function holderPathText(path: readonly string[]): string {
  return path.map(stepText).join(" → ");
}

function withArticle(type: string): string {
  return `${/^_?[aeiou]/i.test(type) ? "an" : "a"} ${type}`;
}
