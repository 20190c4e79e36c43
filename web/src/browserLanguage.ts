/**
 * With LC_ALL=C Chromium names its language "en-US@posix", which its own Intl rejects. uPlot uses Intl while it
 * loads, so this file is imported first.
 */
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en-US" });
}
