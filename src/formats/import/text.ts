/** Lines of a text, without a copy of the whole text. */
export function* linesOf(bytes: Buffer): Generator<string> {
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(0x0a, at);
    const stop = end < 0 ? bytes.length : end;
    yield bytes.toString("utf8", at, stop);
    at = stop + 1;
  }
}
