/** Quotes a word of a command that a user may copy into a shell; unchanged if it needs no quotes. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
