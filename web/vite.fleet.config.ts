/** Builds the pages of a server, dist/web/fleet/: scripts and styles as files of their own, for its content security
 * policy allows nothing that stands in the page. */
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here("./fleet"),
  base: "/",
  logLevel: "warn",
  plugins: [react()],
  build: {
    outDir: here("../dist/web/fleet"),
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
