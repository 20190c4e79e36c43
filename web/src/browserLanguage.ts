/** With LC_ALL=C Chromium names its language "en-US@posix", which its own Intl refuses and uPlot asks it
 * for while it loads: imported before everything else. */
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en-US" });
}
