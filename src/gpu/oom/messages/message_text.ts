/** Collects the lines of one message: its own, and lines that a terminal wrapped without a prefix. */
import type { FrameJson } from "../../../model/documents/documents.js";
import { readMessage } from "./message_readers.js";
import type { OomReading } from "./oom_reading.js";

/** Longest message when wrapped at 80 columns; longer ones are cut before they are read. */
const MESSAGE_LINES = 16;
const MESSAGE_CHARACTERS = 8192;

export class MessageText {
  readonly line: number;
  readonly stack: FrameJson[];
  #text: string;
  /** The same, including lines without a writer between its own. */
  #wrapped: string;
  #lines = 1;

  constructor(line: number, text: string, stack: FrameJson[]) {
    this.line = line;
    this.stack = stack;
    this.#text = text.slice(0, MESSAGE_CHARACTERS);
    this.#wrapped = this.#text;
  }

  get text(): string {
    return this.#text;
  }

  /** Whether no later line belongs to it. */
  get full(): boolean {
    return this.#lines >= MESSAGE_LINES || this.#text.length >= MESSAGE_CHARACTERS;
  }

  add(text: string): void {
    this.#text = joined(this.#text, text);
    this.#wrapped = joined(this.#wrapped, text);
    this.#lines += 1;
  }

  addWrapped(text: string): void {
    this.#wrapped = joined(this.#wrapped, text);
  }

  /** Its text, including the lines in between if that yields more. */
  read(): OomReading | null {
    const own = readMessage(this.#text);
    if (this.#wrapped === this.#text) {
      return own;
    }
    const wrapped = readMessage(this.#wrapped);
    return figures(wrapped) > figures(own) ? wrapped : own;
  }
}

function joined(text: string, more: string): string {
  return text.length >= MESSAGE_CHARACTERS
    ? text
    : `${text}\n${more.slice(0, MESSAGE_CHARACTERS - text.length)}`;
}

function figures(found: OomReading | null): number {
  if (found === null) {
    return -1;
  }
  return Object.values(found.figures).filter((value) => typeof value === "number").length;
}
