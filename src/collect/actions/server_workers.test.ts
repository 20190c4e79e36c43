/** Servers are recognised by their command lines, and their workers by their parent. */
import { expect, test } from "vitest";
import { type ServerProcess, serverIn, serverOf } from "./server_workers.js";

test.each([
  [["/venv/bin/python", "/venv/bin/gunicorn", "-w", "4", "app:app"], "gunicorn"],
  [["gunicorn: master [app:app]"], "gunicorn"],
  [["python", "-X", "dev", "-m", "gunicorn", "app:app"], "gunicorn"],
  [["python3.14t", "-um", "gunicorn", "app:app"], "gunicorn"],
  [["python3", "-Xdev", "-Im", "uvicorn", "app:app"], "uvicorn"],
  [["python3", "-uc", "gunicorn"], null],
  [["python3", "-m", "uvicorn", "app:app", "--workers", "2"], "uvicorn"],
  [["/venv/bin/celery", "-A", "tasks", "worker"], "celery"],
  [["/venv/bin/celery", "-A", "tasks", "beat"], null],
  [["python", "gunicorn_conf_check.py"], null],
  [["python", "tool.py", "--service", "gunicorn"], null],
  [[], null],
])("%j is %s", (command, name) => {
  expect(serverOf(command)).toBe(name);
});

function process(pid: number, parentPid: number, command: string): ServerProcess {
  return { pid, parentPid, startTicks: pid, command: command.split(" ") };
}

test("workers are the master's children, without the helpers of multiprocessing", () => {
  const all = [
    process(10, 1, "python supervisor.py"),
    process(11, 10, "python /venv/bin/uvicorn app:app --workers 2"),
    process(12, 11, "python -c from multiprocessing.resource_tracker import main;main(5)"),
    process(13, 11, "python -c from multiprocessing.spawn import spawn_main;spawn_main()"),
    process(14, 13, "python render.py"),
  ];
  const server = serverIn(all);
  expect(server?.master.pid).toBe(11);
  expect(server?.workers.map(({ pid }) => pid)).toEqual([13]);
  expect(serverIn(all.slice(0, 3))).toBeNull();
});

test("gunicorn's workers have its command line, and are no masters", () => {
  const command = "python /venv/bin/gunicorn -w 2 app:app";
  const all = [process(1, 0, command), process(2, 1, command), process(3, 1, command)];
  expect(serverIn(all)?.master.pid).toBe(1);
  expect(serverIn([...all].reverse())?.master.pid).toBe(1);
});
