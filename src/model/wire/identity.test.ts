import { describe, expect, it } from "vitest";
import { identityOf } from "./identity.js";

describe("the identity of a program", () => {
  it("is the program's name if the environment names no service", () => {
    expect(identityOf({}, "app")).toMatchObject({ service: "app", version: "", env: "" });
  });

  it("prefers Tidemark's own variable, then OpenTelemetry's, then Datadog's", () => {
    const all = {
      TIDEMARK_SERVICE: "mine",
      OTEL_SERVICE_NAME: "otel",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=attribute,service.version=1",
      DD_SERVICE: "datadog",
      DD_VERSION: "2",
    };
    expect(identityOf(all, "app").service).toBe("mine");
    expect(identityOf({ ...all, TIDEMARK_SERVICE: "" }, "app").service).toBe("otel");
    expect(
      identityOf({ ...all, TIDEMARK_SERVICE: "", OTEL_SERVICE_NAME: "" }, "app"),
    ).toMatchObject({ service: "attribute", version: "1" });
    expect(
      identityOf({ DD_SERVICE: "datadog", DD_VERSION: "2", DD_ENV: "prod" }, "app"),
    ).toMatchObject({ service: "datadog", version: "2", env: "prod" });
  });

  it("reads percent-encoded attributes and keeps the others as labels", () => {
    const identity = identityOf(
      {
        OTEL_RESOURCE_ATTRIBUTES:
          "k8s.pod.name=pod-1,track=canary%2Cblue,broken,=x,constructor=c,bad=%zz",
      },
      "app",
    );
    expect(identity.pod).toBe("pod-1");
    expect(identity.labels).toEqual({ track: "canary,blue", constructor: "c", bad: "%zz" });
  });
});
