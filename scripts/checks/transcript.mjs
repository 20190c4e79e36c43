/**
 * The output of a section of the tests. A section that runs alone prints as it goes; sections that run
 * side by side keep their output until they end, so that each prints as one block.
 */
import { AsyncLocalStorage } from "node:async_hooks";

export class Transcript {
  /** @type {string[]} every line that the section printed, without indentation */
  lines = [];
  #kept = "";
  #live;

  /** @param {{live: boolean}} options `live`: print at once */
  constructor({ live }) {
    this.#live = live;
  }

  /** @param {string} text whole lines */
  print(text) {
    if (this.#live) {
      process.stdout.write(text);
    } else {
      this.#kept += text;
    }
  }

  /** Prints the kept output. */
  flush() {
    process.stdout.write(this.#kept);
    this.#kept = "";
  }
}

/** @type {AsyncLocalStorage<Transcript>} the section that the running code belongs to */
const current = new AsyncLocalStorage();
/** Output of code that belongs to no section. */
const outside = new Transcript({ live: true });

/** @returns {Transcript} of the section that the caller belongs to */
export function currentTranscript() {
  return current.getStore() ?? outside;
}

/**
 * Runs a section whose output goes to a transcript.
 * @template T
 * @param {Transcript} transcript
 * @param {() => Promise<T>} run
 */
export function withTranscript(transcript, run) {
  return current.run(transcript, run);
}

/** Prints lines, indented, under the section's heading. @param {string} text */
export function say(text, transcript = currentTranscript()) {
  for (const line of text.trimEnd().split("\n")) {
    transcript.lines.push(line);
    transcript.print(`  ${line}\n`);
  }
}
