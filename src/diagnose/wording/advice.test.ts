import { describe, expect, test } from "vitest";
import type { HolderJson } from "../../model/documents/diagnosis_document.js";
import { adviceFor } from "./advice.js";

const ids = (code: string, type?: string) =>
  adviceFor("child-growth", type === undefined ? null : ({ type } as HolderJson), code).map(
    ({ id }) => id,
  );

describe("advice for a worker that grows", () => {
  test.each([
    ["handle /srv/app.py init_process /venv/site-packages/gunicorn/workers/base.py", "TM-A062"],
    [
      "handle /srv/app.py run /venv/uvicorn/server.py run /venv/site-packages/gunicorn/app/base.py",
      "TM-A062",
    ],
    ["work /srv/tasks.py trace_task /venv/site-packages/celery/app/trace.py", "TM-A063"],
    ["handle /srv/app.py run /venv/site-packages/uvicorn/server.py", "TM-A064"],
    ["work /srv/a.py worker /usr/lib/python3.11/multiprocessing/pool.py", "TM-A065"],
    ["work /srv/a.py _process_worker /usr/lib/python3.12/concurrent/futures/process.py", "TM-A065"],
    ["work /srv/a.py main /srv/uvicornish.py", "TM-A061"],
  ])("%s", (code, id) => {
    expect(ids(code).filter((each) => each.startsWith("TM-A06"))).toEqual([id]);
    expect(ids(code, "list")).toEqual(["TM-A001", id]);
  });
});

test("a buffer that is extended", () => {
  for (const type of ["numpy.ndarray", "bytearray", "_io.BytesIO", "pandas.core.frame.DataFrame"]) {
    expect(adviceFor("python-leak", { type } as HolderJson, "")[0]?.id).toBe("TM-A007");
  }
});
