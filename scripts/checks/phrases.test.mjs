/** Tests the list of phrases to avoid, and the search for them in text. */
import { expect, test } from "vitest";
import { findPhrases, PHRASES } from "./phrases.mjs";

const found = (/** @type {string} */ text) => findPhrases(text).map(({ text: hit }) => hit);

test.each([
  ["a block that is made anew", "anew"],
  ["Of a device, none can be had.", "can be had"],
  ["it stands still", "stands still"],
  ["some milliseconds", "some milliseconds"],
  ["ways from roots", "ways from roots"],
  ["Blocks are told\n * apart by address", "told apart"],
  ["'peak' stands there twice", "stands there"],
  ["the way from a root", "way from a root"],
  ["What it Tells Of them", "Tells Of"],
])("%s", (text, phrase) => {
  expect(found(text)).toEqual([phrase]);
});

test("a phrase is found over the lines of a comment, and over the pieces of a string", () => {
  expect(found(" * it stands\n * still")).toEqual(["stands still"]);
  expect(found("// it stands\n  // still")).toEqual(["stands still"]);
  expect(found("# worth a\n# word")).toEqual(["worth a word"]);
  expect(found('"worth a " +\n    "word"')).toEqual(["worth a word"]);
});

test.each([
  "renewed, amended, recommended",
  "the last option",
  "it is told to stop",
  "for (const said of lines) {}",
  "sometimes",
])("%s is no hit", (text) => {
  expect(found(text)).toEqual([]);
});

test("a hit names its line and what to write instead", () => {
  expect(findPhrases("one\ntwo dear three")).toEqual([
    { line: 2, text: "dear", instead: "expensive" },
  ]);
});

test("every phrase is written in the notation that is described", () => {
  for (const { phrase, instead } of PHRASES) {
    expect(phrase).toMatch(/^(?:[a-z-]+|\([a-z |-]+\))(?: (?:[a-z-]+|\([a-z |-]+\)))*$/);
    expect(instead).not.toBe("");
  }
});
