/**
 * Draws a full-screen view with ink on the terminal's alternate screen. The earlier content is restored however
 * the view ends (a key, Ctrl-C, a signal, an error; only SIGKILL prevents it).
 *
 * Lines come from the functions that print lists; ink handles keys, resizing and redrawing.
 */
import { type Key, render, Text, useApp, useInput, useStdout } from "ink";
import { useEffect, useRef, useState } from "react";
import type { Millis } from "../../model/base/units.js";
import { type Screen, screenInto } from "../text/output.js";

/** `Seen` is the data of one refresh; `Choice` is what the user selected by keys: sorting, a filter, a row. */
export interface FullScreenView<Seen, Choice> {
  /** The command's name, for messages. */
  readonly name: string;
  /** What to run without a terminal. */
  readonly instead: string;
  readonly intervalMs: Millis;
  readonly choice: Choice;
  /** Reads new data; `null` before the first read. An error ends the view and is passed to the caller. */
  readonly poll: (before: Seen | null) => Seen | Promise<Seen>;
  /** Draws at most `rows` lines. */
  readonly draw: (screen: Screen, seen: Seen, choice: Choice, rows: number) => void;
  /** The choice after a key press; unchanged if the key has no meaning; null to leave. */
  readonly press: (choice: Choice, input: string, key: Key) => Choice | null;
}

const SECOND_SCREEN = "\x1b[?1049h\x1b[H";
const FIRST_SCREEN = "\x1b[?1049l";
const ENDING_SIGNALS = ["SIGTERM", "SIGHUP", "SIGINT"] as const;

/** Shows the view until the user leaves it. Needs a terminal. */
export async function drawUntilLeft<Seen, Choice>(
  view: FullScreenView<Seen, Choice>,
): Promise<void> {
  const { stdout } = process;
  // Runs before switching the screen, so that an error on the first read is printed on the normal screen.
  const first = await view.poll(null);
  stdout.write(SECOND_SCREEN);
  const app = render(<View view={view} first={first} />, { patchConsole: false });
  const leave = () => {
    app.unmount();
    stdout.write(FIRST_SCREEN);
    for (const signal of ENDING_SIGNALS) {
      process.off(signal, die);
    }
  };
  const die = (signal: NodeJS.Signals) => {
    leave();
    process.kill(process.pid, signal);
  };
  for (const signal of ENDING_SIGNALS) {
    process.on(signal, die);
  }
  try {
    await app.waitUntilExit();
  } finally {
    leave();
  }
}

interface ViewProps<Seen, Choice> {
  readonly view: FullScreenView<Seen, Choice>;
  readonly first: Seen;
}

function View<Seen, Choice>({ view, first }: ViewProps<Seen, Choice>) {
  const { exit } = useApp();
  const { stdout } = useStdout();
  const [seen, setSeen] = useState(first);
  const [choice, setChoice] = useState(view.choice);
  const [, setSize] = useState("");

  useEffect(() => {
    let over = false;
    let latest = first;
    let timer: NodeJS.Timeout;
    const refreshView = async () => {
      try {
        latest = await view.poll(latest);
      } catch (error) {
        exit(error as Error);
        return;
      }
      if (!over) {
        setSeen(latest);
        timer = setTimeout(refreshView, view.intervalMs);
      }
    };
    timer = setTimeout(refreshView, view.intervalMs);
    const resized = () => setSize(`${stdout.columns} ${stdout.rows}`);
    stdout.on("resize", resized);
    return () => {
      over = true;
      clearTimeout(timer);
      stdout.off("resize", resized);
    };
  }, [view, first, exit, stdout]);

  // Several keys may arrive before a redraw, so each starts from the state that the previous key left.
  const latestChoice = useRef(view.choice);
  useInput((input, key) => {
    for (const [typed, meaning] of keysOf(input, key)) {
      const next = view.press(latestChoice.current, typed, meaning);
      if (next === null) {
        exit();
        return;
      }
      latestChoice.current = next;
    }
    setChoice(latestChoice.current);
  });

  const lines: string[] = [];
  // One row less than available, because a screen filled to its last row would scroll at every update.
  const rows = Math.max(4, (stdout.rows ?? 24) - 1);
  view.draw(
    screenInto(stdout, (line) => lines.push(line)),
    seen,
    choice,
    rows,
  );
  return <Text wrap="truncate">{lines.slice(0, rows).join("\n")}</Text>;
}

/** Fast or pasted input arrives as one text. */
function keysOf(input: string, key: Key): [input: string, key: Key][] {
  return input.length <= 1
    ? [[input, key]]
    : Array.from(input, (typed) => [typed, { ...key, return: typed === "\r" || typed === "\n" }]);
}
