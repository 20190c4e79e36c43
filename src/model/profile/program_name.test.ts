import { expect, test } from "vitest";
import { nameInTitle } from "./program_name.js";

test("the name in a title is that of the program, whatever the process adds about itself", () => {
  const names = {
    "gunicorn: master [shop:app]": "gunicorn",
    "[celeryd: celery@host:MainProcess] -active- (-A tasks worker)": "celeryd",
    "[worker]": "worker",
    "ray::IDLE": "ray",
    "dask worker [tcp://10.0.0.1:80]": "dask",
    "/opt/shop/bin/serve.py: worker /run/shop.sock": "serve",
    "python3 /srv/app.py worker 3": "app",
    "python -m shop.jobs": "shop.jobs",
    服务: "服务",
    ":": ":",
    " ": "program",
  };
  expect(
    Object.fromEntries(Object.keys(names).map((title) => [title, nameInTitle(title)])),
  ).toEqual(names);
});
