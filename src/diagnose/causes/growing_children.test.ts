import { expect, test } from "vitest";
import { evidenceOf, FIXTURE_START_MS } from "../evidence/evidence.fixture.js";
import { diagnose } from "../verdict/verdict.js";

test("the verdict and the evidence name the worker that grows, not all workers", () => {
  const calm = [44, 45, 46].map((pid) => `child ${pid} anonRssBytes 20`).join("\n");
  const text = `anonRssBytes 40\nchild 43 anonRssBytes 20 + 1/s\n${calm}`;
  const sentences = (written: string) => {
    const { verdict: found, evidence } = diagnose(evidenceOf(written));
    return [found.summary, evidence.find(({ rule }) => rule === "children")?.detail ?? ""];
  };
  for (const sentence of sentences(`${text}\nsite work keeps 1/s pid=43`)) {
    expect(sentence).toMatch(/^One of 4 child processes grows, process 43[,:] /);
  }
  for (const sentence of sentences(
    text.replace("44 anonRssBytes 20", "44 anonRssBytes 20 + 0.2/s"),
  )) {
    expect(sentence).toMatch(/^2 of 4 child processes grow, process 43 by far the fastest[,:] /);
  }
  for (const sentence of sentences(text.replaceAll(/20$/gm, "20 + 1/s"))) {
    expect(sentence).toMatch(/^All 4 child processes grow[,:] /);
  }
  const two = "anonRssBytes 40\nchild 43 anonRssBytes 20 + 1/s\nchild 44 anonRssBytes 20 + 1/s";
  for (const sentence of sentences(two)) {
    expect(sentence).toMatch(/^Both child processes grow[,:] /);
  }
  for (const sentence of sentences("anonRssBytes 40\nchild 43 anonRssBytes 20 + 1/s")) {
    expect(sentence).toMatch(/^Child process 43 grows(?:: | by )/);
  }
});

test("workers that ended while the program went on grew until they ended", () => {
  const evidence = evidenceOf(
    "anonRssBytes 40\nchild 43 anonRssBytes 20 + 1/s\nchild 44 anonRssBytes 20 + 1/s",
  );
  const ended = (afterMs: number) => ({
    ...evidence,
    processes: evidence.processes.map((process, at) =>
      at === 0 ? process : { ...process, endedMs: FIXTURE_START_MS + afterMs },
    ),
  });
  const said = (afterMs: number) => diagnose(ended(afterMs)).verdict.summary;
  expect(said(50_000)).toMatch(/^Both child processes grew until they ended[,:] /);
  expect(said(59_500)).toMatch(/^Both child processes grow[,:] /);
});
