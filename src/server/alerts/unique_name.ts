/** The name, or the first of "name #2", "name #3"... that is not taken; it is taken then. */
export function uniqueName(wanted: string, taken: Set<string>): string {
  let name = wanted;
  for (let times = 2; taken.has(name); times++) {
    name = `${wanted} #${times}`;
  }
  taken.add(name);
  return name;
}
