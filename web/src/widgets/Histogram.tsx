interface Bar {
  readonly value: number;
  /** Under the bar. */
  readonly label: string;
  readonly title: string;
}

/** A histogram of a few bars that use the available width. */
export function Histogram({ bars }: { bars: readonly Bar[] }) {
  const most = bars.reduce((a, bar) => Math.max(a, bar.value), 0);
  const labels = shownLabels(bars);
  return (
    <div
      className="histogram"
      role="img"
      aria-label={bars
        .filter((bar) => bar.value > 0)
        .map((bar) => bar.title)
        .join("; ")}
    >
      {bars.map((bar, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: bars are identified by their position
        <div key={index} title={bar.title}>
          <i style={{ "--share": most > 0 ? bar.value / most : 0 } as React.CSSProperties} />
          <span>{labels[index]}</span>
        </div>
      ))}
    </div>
  );
}

/** Labels about eight bars and the last. Bars with the same rounded label show it once. */
export function shownLabels(bars: readonly Pick<Bar, "label">[]): string[] {
  const every = Math.ceil(bars.length / 8);
  let before = "";
  return bars.map(({ label }, index) => {
    if ((index % every !== 0 && index !== bars.length - 1) || label === before) {
      return "";
    }
    before = label;
    return label;
  });
}
