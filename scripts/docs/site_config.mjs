/** How VitePress builds the docs site from the pages that stage.mjs writes. */
import { anchorOf } from "./markdown_links.mjs";

/** Leaves code blocks 80 columns, the width of a command's output, between the sidebar and the outline. */
const style = `
.vp-doc div[class*="language-"] code { font-size: 12.25px; padding: 0 16px; }
.VPDoc.has-aside .content-container { max-width: 752px; }
`;

/**
 * @param {{sidebar: import("./stage.mjs").Group[], outDir: string}} site
 * @returns {import("vitepress").UserConfig}
 */
export function siteConfig({ sidebar, outDir }) {
  return {
    title: "Tidemark",
    description: "Where a live Python process's memory goes, why it grows, and what holds it",
    head: [["style", {}, style]],
    outDir,
    cacheDir: `${outDir}/../cache`,
    // A broken link between pages stops the build.
    ignoreDeadLinks: false,
    lastUpdated: false,
    markdown: {
      // Our pages are plain Markdown, so HTML tags are text.
      html: false,
      // The same anchors as on GitHub, so that a link works in both places.
      anchor: { slugify: anchorOf },
    },
    themeConfig: {
      search: { provider: "local" },
      outline: [2, 3],
      sidebar: sidebar.map((group) => ({ ...group, collapsed: false })),
      nav: [
        { text: "Questions", link: "/questions" },
        { text: "Which tool", link: "/which-tool" },
        { text: "Commands", link: "/commands" },
      ],
    },
  };
}
