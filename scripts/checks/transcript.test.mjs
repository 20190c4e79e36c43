import { expect, test, vi } from "vitest";
import { say, Transcript, withTranscript } from "./transcript.mjs";

test("concurrent sections keep their lines separate, and print completely when flushed", async () => {
  const printed = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const transcripts = ["first", "second"].map((name) => {
    const transcript = new Transcript({ live: false });
    const run = async () => {
      say(`${name} begins`);
      await new Promise((resolve) => setTimeout(resolve, 5));
      say(`${name} ends`);
    };
    return { transcript, ended: withTranscript(transcript, run) };
  });
  await Promise.all(transcripts.map(({ ended }) => ended));
  expect(printed).not.toHaveBeenCalled();
  for (const { transcript } of transcripts) {
    transcript.flush();
  }
  const texts = printed.mock.calls.map(([text]) => text);
  printed.mockRestore();
  expect(texts).toEqual(["  first begins\n  first ends\n", "  second begins\n  second ends\n"]);
  expect(transcripts[1]?.transcript.lines).toEqual(["second begins", "second ends"]);
});
