interface Bar {
  readonly value: number;
  /** Under the bar. */
  readonly label: string;
  readonly title: string;
}

/** Bars of the page's own making: few, and as wide as there is room. */
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
        // biome-ignore lint/suspicious/noArrayIndexKey: bars are known by their place
        <div key={index} title={bar.title}>
          <i style={{ "--share": most > 0 ? bar.value / most : 0 } as React.CSSProperties} />
          <span>{labels[index]}</span>
        </div>
      ))}
    </div>
  );
}

/** Of some eight bars and the last. Two that a rounded label cannot tell apart show it once. */
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
