import { expect, test } from "vitest";
import { serviceReport } from "../../../test/service_report.js";
import { framesMatching } from "./frameNames.js";

const { tables } = serviceReport();

test("search accepts substrings, file:line and patterns, and refuses an invalid pattern", () => {
  const count = (text: string) => framesMatching(tables, text)?.reduce((a, b) => a + b, 0);
  expect(count("REMEMBER")).toBe(1);
  expect(count("history.py:41")).toBe(1);
  expect(count("/^(encode|embed)$/")).toBe(2);
  expect(count("nowhere")).toBe(0);
  expect(framesMatching(tables, "/(/")).toBeNull();
});
