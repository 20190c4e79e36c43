/**
 * Builds the app into one HTML file, dist/web/index.html: the template of every report. With `--mode plan` or
 * `--mode gpu`, builds dist/web/plan.html or gpu.html, the template of the page of a plan or of GPU snapshots.
 */
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Puts the script and the style into the page: a file opened from disk may not load others. */
function inlineAssets(fileName: string): Plugin {
  return {
    name: "tidemark-inline-assets",
    enforce: "post",
    generateBundle(_, bundle) {
      const page = bundle["index.html"];
      if (page?.type !== "asset") {
        throw new Error("the build made no index.html");
      }
      let html = String(page.source);
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") {
          const tag = new RegExp(`<script[^>]*src="[^"]*${escaped(name)}"[^>]*></script>`);
          const code = part.code.replace(/<\/script/gi, "<\\/script").replace(/<!--/g, "<\\!--");
          // The script goes to the end of the body: it reads the document before it.
          html = html
            .replace(tag, "")
            .replace("</body>", () => `<script type="module">${code}</script></body>`);
          delete bundle[name];
        } else if (name.endsWith(".css")) {
          const tag = new RegExp(`<link[^>]*href="[^"]*${escaped(name)}"[^>]*>`);
          html = html.replace(tag, () => `<style>${String(part.source)}</style>`);
          delete bundle[name];
        }
      }
      if (
        /<(script|link)[^>]*(src|href)=/.test(
          html.replace(/<script type="module">[\s\S]*?<\/script>/g, ""),
        )
      ) {
        throw new Error("the page still names another file");
      }
      page.source = html;
      page.fileName = fileName;
    },
  };
}

/** Another script than that of reports. */
function startsWith(script: string): Plugin {
  return {
    name: "tidemark-entry",
    transformIndexHtml: {
      order: "pre",
      handler: (html) => html.replace("./src/main.tsx", script),
    },
  };
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

export default defineConfig(({ mode }) => {
  const isOther = mode === "plan" || mode === "gpu";
  return {
    root: here("."),
    base: "./",
    logLevel: "warn",
    plugins: [
      react(),
      inlineAssets(isOther ? `${mode}.html` : "index.html"),
      ...(isOther ? [startsWith(`./src/${mode}Main.tsx`)] : []),
    ],
    build: {
      outDir: here("../dist/web"),
      emptyOutDir: !isOther,
      target: "es2022",
      minify: "terser",
      cssCodeSplit: false,
      assetsInlineLimit: Number.MAX_SAFE_INTEGER,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
  };
});
