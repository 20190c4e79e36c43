/** The lines of one message as they come: its own, and those that a terminal wrapped off without a prefix. */
import type { FrameJson } from "../../../model/documents/documents.js";
import { readMessage } from "./message_readers.js";
import type { OomReading } from "./oom_reading.js";

/** A message wrapped at 80 columns is this long at most; what is longer is cut before anything reads it. */
const MESSAGE_LINES = 16;
const MESSAGE_CHARACTERS = 8192;

export class MessageText {
  readonly line: number;
  readonly stack: FrameJson[];
  #text: string;
  /** The same with lines of no writer between its own. */
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

  /** Whether nothing that follows belongs to it any more. */
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

  /** What it says: with the lines in between, where that is more. */
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
