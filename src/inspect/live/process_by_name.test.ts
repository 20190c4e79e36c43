import { describe, expect, test } from "vitest";
import { chooseByName } from "./process_by_name.js";

const process = (pid: number, parentPid: number, command: string) => ({
  pid,
  parentPid,
  command: command.split(" "),
});
const SERVER = [
  process(10, 1, "python /srv/bin/gunicorn -w 2 shop:app"),
  process(11, 10, "python /srv/bin/gunicorn -w 2 shop:app"),
  process(12, 10, "python /srv/bin/gunicorn -w 2 shop:app"),
  process(20, 1, "python worker.py"),
];

describe("a process by its name", () => {
  test("is the server, not one of its workers", () => {
    expect(chooseByName(SERVER, "gunicorn")).toBe(10);
    expect(chooseByName(SERVER, "shop:app$")).toBe(10);
    expect(chooseByName(SERVER, "worker.py")).toBe(20);
  });

  test("is taken as text if it is not a regular expression", () => {
    expect(chooseByName([process(30, 1, "python app.py --tag=a(b")], "a(b")).toBe(30);
  });

  test("several are shown from where their command lines differ, an option with its value", () => {
    const python = "/home/me/.pyenv/versions/3.11.7/envs/a-long-name-of-an-environment/bin/python3";
    const two = [8001, 8002].map((port, at) =>
      process(40 + at, 1, `${python} -m app.server --workers 4 --port ${port} --reload`),
    );
    expect(() => chooseByName(two, "app.server")).toThrow(
      "40 (… --port 8001 --reload), 41 (… --port 8002 --reload)",
    );
    const programs = [process(50, 1, `${python} a.py`), process(51, 1, "/usr/bin/python3 a.py -v")];
    expect(() => chooseByName(programs, "a.py")).toThrow("50 (python3 a.py), 51 (python3 a.py -v)");
    const same = [process(60, 1, `${python} a.py`), process(61, 1, `${python} a.py`)];
    expect(() => chooseByName(same, "a.py")).toThrow("60 (… a.py), 61 (… a.py)");
  });

  test("must match one tree: none or several are refused with a list", () => {
    expect(() => chooseByName(SERVER, "celery")).toThrow(/no Python process has 'celery'/);
    expect(() => chooseByName(SERVER, "python")).toThrow(/2 processes have 'python'.*10 \(.*20 \(/);
  });
});
