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

  test("is taken as text where it is no regular expression", () => {
    expect(chooseByName([process(30, 1, "python app.py --tag=a(b")], "a(b")).toBe(30);
  });

  test("must be that of one tree: none and several are refused with what there is", () => {
    expect(() => chooseByName(SERVER, "celery")).toThrow(/no Python process has 'celery'/);
    expect(() => chooseByName(SERVER, "python")).toThrow(/2 processes have 'python'.*10 \(.*20 \(/);
  });
});
