/** Figures as people read them: MiB and GiB, MiB/h, times from the start. */
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Three digits at least where there are that many: "812 B", "1.25 MiB", "38.1 GiB". */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return "–";
  let unit = 0;
  let value = Math.abs(bytes);
  while (value >= 999.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const sign = bytes < 0 ? "−" : "";
  return `${sign}${unit === 0 ? Math.round(value) : threeDigits(value)} ${BYTE_UNITS[unit]}`;
}

export function formatSignedBytes(bytes: number): string {
  return bytes > 0 ? `+${formatBytes(bytes)}` : formatBytes(bytes);
}

export function formatCount(count: number): string {
  if (!Number.isFinite(count)) return "–";
  if (count < 0) return `−${formatCount(-count)}`;
  if (count < 9_999.5) return Math.round(count).toLocaleString("en-US");
  if (count < 999_500) return `${threeDigits(count / 1e3)} k`;
  if (count < 999_500_000) return `${threeDigits(count / 1e6)} M`;
  return `${threeDigits(count / 1e9)} G`;
}

/** `share` from 0 to 1. */
export function formatShare(share: number): string {
  if (!Number.isFinite(share)) return "–";
  const percent = share * 100;
  if (percent === 0) return "0 %";
  if (Math.abs(percent) < 0.1) return "<0.1 %";
  return `${Math.abs(percent) < 10 ? percent.toFixed(1) : percent.toFixed(0)} %`;
}

/** Always MiB/h, as growth is compared between runs. */
export function formatGrowth(bytesPerHour: number): string {
  const mebibytes = bytesPerHour / 1024 ** 2;
  const rounded =
    Math.abs(mebibytes) >= 1000
      ? Math.round(mebibytes).toLocaleString("en-US")
      : threeDigits(Math.abs(mebibytes));
  const sign = mebibytes > 0 ? "+" : mebibytes < 0 ? "−" : "";
  return `${sign}${rounded.replace("-", "")} MiB/h`;
}

export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 1) return "<1 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${pad(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
}

/** Time since the start: "+8.3 s" in the first minute, then "+1:05", "+2:03:04". */
export function formatRelative(timeMs: number, startMs: number): string {
  const ms = timeMs - startMs;
  const sign = ms < 0 ? "−" : "+";
  const size = Math.abs(ms);
  if (size < 59_950) return `${sign}${(size / 1000).toFixed(1)} s`;
  const seconds = Math.round(size / 1000);
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  const clock = hours > 0 ? `${hours}:${pad(minutes)}` : String(minutes);
  return `${sign}${clock}:${pad(seconds % 60)}`;
}

function threeDigits(value: number): string {
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function pad(number: number): string {
  return String(number).padStart(2, "0");
}
