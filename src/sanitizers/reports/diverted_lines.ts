/**
 * Separates UndefinedBehaviorSanitizer's reports from a program's stderr. Its library shares the report file's setting
 * with AddressSanitizer's, so only one of the two can be written to a file.
 *
 *     FILE:LINE:COLUMN: runtime error: MESSAGE
 *     0x60200000a560: note: pointer points here      then bytes and a caret, only for some kinds
 *         #0|0x7f44bce783f7|...
 *     (empty line)
 */
const DEADLY = "AddressSanitizer:DEADLYSIGNAL";
const BEGINS = /: runtime error: /;
const CONTINUES =
  /^\s*#\d+\||^0x[0-9a-f]+: note: |^ +(?:[0-9a-f]{2} +)+[0-9a-f]{2}\s*$|^ *\^[~ ]*$/;
/** A longer line is passed on in parts. */
const LONGEST_LINE = 65_536;

export class DivertedLines {
  readonly #pass: (text: string) => void;
  readonly #diverted: string[] = [];
  #rest = "";
  #waiting = "";
  #inReport = false;

  constructor(pass: (text: string) => void) {
    this.#pass = pass;
  }

  /** Each byte is one character. */
  write(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      this.#take(line);
    }
    if (this.#rest.length > LONGEST_LINE) {
      this.#pass(this.#rest);
      this.#rest = "";
    }
  }

  /** Passes on an unfinished line, such as a prompt, unless it has not changed since the last call. */
  passPartialLine(): void {
    if (!this.#inReport && this.#rest !== "" && this.#rest === this.#waiting) {
      this.#pass(this.#rest);
      this.#rest = "";
    }
    this.#waiting = this.#rest;
  }

  /** The reports. */
  end(): string {
    if (this.#rest !== "") {
      this.#pass(this.#rest);
    }
    return this.#diverted.join("\n");
  }

  #take(line: string): void {
    const begins = BEGINS.test(line);
    const ends = this.#inReport && line === "";
    if (line === DEADLY) {
      return; // the report is in the file
    }
    if (begins || ends || (this.#inReport && CONTINUES.test(line))) {
      this.#diverted.push(line);
      this.#inReport = !ends;
    } else {
      this.#inReport = false;
      this.#pass(`${line}\n`);
    }
  }
}
