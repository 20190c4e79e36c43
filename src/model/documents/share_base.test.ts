import { expect, it } from "vitest";
import type { DiagnosisJson, SuspectJson } from "./diagnosis_document.js";
import { shareBase } from "./share_base.js";

const base = (programPerHour: number, suspects: readonly Partial<SuspectJson>[]) =>
  shareBase({
    growth: { bytesPerHour: programPerHour },
    suspects,
  } as unknown as DiagnosisJson);

it("is the program's growth, unless the suspects together exceed it", () => {
  expect(base(100, [{ growthBytesPerHour: 60 }, { growthBytesPerHour: 45 }])).toBe("the growth");
  expect(base(100, [{ growthBytesPerHour: 80 }, { growthBytesPerHour: 70 }])).toBe(
    "what all sites keep",
  );
});

it("is what the sites keep if the growth of the program is not certain", () => {
  const growth = { bytesPerHour: 100, ofLiveBytes: true };
  const suspects = [{ growthBytesPerHour: 100 }];
  expect(shareBase({ growth, suspects } as unknown as DiagnosisJson)).toBe("what all sites keep");
});

it("does not count a suspect that another one contains", () => {
  const whole = { growthBytesPerHour: 100 };
  expect(base(100, [whole, { growthBytesPerHour: 90, partOf: 1 }])).toBe("the growth");
  expect(base(100, [whole, { growthBytesPerHour: 90, puts: true }])).toBe("the growth");
});

it("is the growth of the suspects where the program does not grow, which needs no other name", () => {
  expect(base(-5, [{ growthBytesPerHour: 60 }])).toBe("the growth");
});
