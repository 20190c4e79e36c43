/** The user's browser, started by the program that Linux desktops have for this, or by the variable BROWSER. */
import { spawn } from "node:child_process";

/** False over SSH, in containers and in scripts, where no browser would be seen. */
export function canOpenBrowser(): boolean {
  const { BROWSER, DISPLAY, WAYLAND_DISPLAY } = process.env;
  return process.stderr.isTTY && [BROWSER, DISPLAY, WAYLAND_DISPLAY].some(Boolean);
}

/** The address has been printed, so a browser that does not start is no error. */
export function openBrowser(url: string): void {
  const [program = "xdg-open"] = (process.env.BROWSER || "xdg-open").split(":");
  spawn(program, [url], { stdio: "ignore", detached: true })
    .on("error", () => {})
    .unref();
}
