/** A word-sized chart of readings over time. */
const WIDTH = 120;
const HEIGHT = 22;

export function Sparkline({ values, name }: { values: readonly (number | null)[]; name: string }) {
  const most = Math.max(0, ...values.map((value) => value ?? 0));
  if (most === 0) {
    return null;
  }
  const x = (step: number) => (values.length < 2 ? 0 : (step / (values.length - 1)) * WIDTH);
  const y = (value: number) => HEIGHT - 1 - (value / most) * (HEIGHT - 3);
  let path = "";
  let isOpen = false;
  values.forEach((value, step) => {
    if (value === null) {
      isOpen = false;
      return;
    }
    path += `${isOpen ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
    isOpen = true;
  });
  return (
    <svg
      className="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={name}
    >
      <path d={path} />
    </svg>
  );
}
