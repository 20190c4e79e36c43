import { describe, expect, test } from "vitest";
import type { TidemarkError } from "../../model/errors/errors.js";
import { KnownNames } from "./known_names.js";

const STORED = new Map([
  ["checkout", ["2.40.0", "2.41.0", "2.42.0"]],
  ["checkout-eu", ["2.42.0"]],
  ["feature-flags", [""]],
  ["mailer", ["10", "11", "12", "13", "14", "15"]],
]);
const known = new KnownNames({ serviceVersions: async () => STORED }, { flush: async () => {} });
const refused = async (service: string, version?: string) =>
  known.mustKnow(service, version).then(
    () => null,
    ({ what, next }: TidemarkError) => `${what}; ${next}`,
  );

describe("an unknown name is refused with the names that were meant", () => {
  test.each([
    ["chekout", undefined, "no service is called chekout; did you mean checkout?"],
    ["Checkout", undefined, "did you mean checkout or checkout-eu?"],
    ["flags", undefined, "did you mean feature-flags?"],
    ["checkout@2.42.0", undefined, "did you mean checkout?"],
    ["nope", undefined, "no service is called nope; list them: tidemark fleet services"],
    ["", undefined, "no service is called"],
    ["checkout", "2.4.20", "no process of checkout has the version 2.4.20; did you mean 2.4"],
    ["checkout", "9", "its versions: 2.40.0, 2.41.0, 2.42.0"],
    ["checkout", "", "no process of checkout has the version ''"],
    ["feature-flags", "1", "its processes name no version"],
    ["mailer", "nope", "its last versions: 11, 12, 13, 14, 15"],
  ])("%s, version %s", async (service, version, expected) => {
    expect(await refused(service, version)).toContain(expected);
  });

  test("and a known one is not", async () => {
    expect(await refused("checkout")).toBeNull();
    expect(await refused("checkout", "2.41.0")).toBeNull();
    expect(await refused("feature-flags", "")).toBeNull();
  });
});

test("what was acknowledged a moment ago is known once it is in the store", async () => {
  const stored = new Map<string, string[]>();
  const flush = async () => void stored.set("new", ["1"]);
  const names = new KnownNames({ serviceVersions: async () => stored }, { flush });
  await names.mustKnow("new", "1");
  await expect(names.mustKnow("new", "2")).rejects.toThrow(/has the version 2; its versions: 1/);
});
