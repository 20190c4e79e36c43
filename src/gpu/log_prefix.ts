/** What launchers put before a program's own line: ranks, workers, times. */

export interface PrefixedLine {
  /** Equal for lines of one writer; "" where nothing is put before. */
  readonly writer: string;
  readonly rank: number | null;
  readonly text: string;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what colours in a log are
const COLOUR = /\x1b\[[0-9;?]*[A-Za-z]/g;

/** Each with the rank as its first group, where it tells one. */
const PREFIXES: readonly RegExp[] = [
  /^\[rank(\d+)\]:?(?:\[[A-Z]\d[^\]]*\])?[ \t]?/, // torchrun from 2.2 on
  /^\[default(\d+)\]:[ \t]?/, // torchrun with --tee
  /^\[\d+,(\d+)\]<std(?:err|out)>:[ \t]?/, // mpirun --tag-output
  /^\((?:\w[\w:]* )?(?:rank=(\d+), )?(?:pid|ip)=[^)]*\)[ \t]?/, // Ray
  /^[Rr]ank[ _:=]?(\d+)[:\]|][ \t]?/,
  /^\[[Rr]ank[ _:=]?(\d+)\][ \t]?/,
  /^[\w.-]+-(\d+) *\| ?/, // docker compose, Kubernetes jobs
  /^(\d{1,5}): /, // srun --label
];

export function splitPrefix(line: string): PrefixedLine {
  const plain = line.replace(COLOUR, "");
  for (const pattern of PREFIXES) {
    const match = pattern.exec(plain);
    if (match !== null) {
      const rank = match[1] === undefined ? null : Number(match[1]);
      return { writer: match[0].trim(), rank, text: plain.slice(match[0].length) };
    }
  }
  return { writer: "", rank: null, text: plain };
}
