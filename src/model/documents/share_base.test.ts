import { expect, it } from "vitest";
import type { DiagnosisJson } from "./diagnosis_document.js";
import { shareBase } from "./share_base.js";

it("is the program's growth, unless that is not certain or the sites keep more", () => {
  const base = (growth: Partial<DiagnosisJson["growth"]>) =>
    shareBase({ growth: { bytesPerHour: 100, ...growth } as DiagnosisJson["growth"] });
  expect(base({})).toBe("the growth");
  expect(base({ ofLiveBytes: true })).toBe("what all sites keep");
  expect(base({ sitesExceed: true })).toBe("what all sites keep");
});
