// The site of docs/. It is built without a network: no fonts, scripts or search from elsewhere.
import path from "node:path";
import { defineConfig } from "vitepress";

const repository = "https://github.com/stsmigrate/stsmigrate";

// Pages also link to files outside of docs/. On the site those are links to the repository; a Go test
// (pages_test.go) sees that the files exist.
function outside(href: string, page: string): string | undefined {
  if (/^[a-z]+:|^[#/]/.test(href)) return undefined;
  const [file, anchor] = href.split("#");
  const target = path.posix.join("docs", path.posix.dirname(page), file);
  const isPage = target.startsWith("docs/") && /\.(md|svg|png)$/.test(target);
  if (isPage) return undefined;
  return `${repository}/blob/main/${target}${anchor ? "#" + anchor : ""}`;
}

// Anchors are GitHub's, so that one link works in both places.
const slugify = (heading: string): string =>
  heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");

export default defineConfig({
  lang: "en",
  title: "stsmigrate",
  description: "Moves a Kubernetes StatefulSet to another namespace or cluster while its application runs.",
  base: process.env.DOCS_BASE ?? "/",
  cleanUrls: true,
  metaChunk: true,
  rewrites: {
    "development/decisions/README.md": "development/decisions/index.md",
    "schemas/README.md": "schemas/index.md",
    "applications/README.md": "applications/index.md",
  },
  markdown: {
    anchor: { slugify },
    config(md) {
      // Text is text: what looks like an expression of Vue is shown.
      for (const rule of ["text", "code_inline"]) {
        const render = md.renderer.rules[rule]!;
        md.renderer.rules[rule] = (...args) => render(...args).replaceAll("{{", "&#123;&#123;");
      }
      md.core.ruler.push("outside", (state) => {
        for (const token of state.tokens.flatMap((t) => t.children ?? [])) {
          const href = token.type === "link_open" ? token.attrGet("href") : null;
          const to = href && outside(href, state.env.relativePath ?? "");
          if (to) token.attrSet("href", to);
        }
      });
    },
  },
  themeConfig: {
    search: { provider: "local" },
    outline: { level: [2, 3] },
    socialLinks: [{ icon: "github", link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path` },
    nav: [
      { text: "Install", link: "/install" },
      { text: "Tutorial", link: "/tutorials/namespace" },
      { text: "Concepts", link: "/concepts" },
      { text: "Troubleshooting", link: "/troubleshooting" },
    ],
    sidebar: [
      {
        text: "Start",
        items: [
          { text: "Overview", link: "/" },
          { text: "Install", link: "/install" },
          { text: "Concepts", link: "/concepts" },
          { text: "Questions", link: "/faq" },
          { text: "Compared with", link: "/comparison" },
        ],
      },
      {
        text: "Tutorials",
        items: [
          { text: "To another namespace", link: "/tutorials/namespace" },
          { text: "To another cluster (two kind clusters)", link: "/walkthrough" },
          { text: "Rolling back", link: "/tutorials/rollback" },
          { text: "With the orchestrator", link: "/tutorials/orchestrator" },
          { text: "A new cluster beside the old one", link: "/tutorials/blue-green" },
          { text: "A move that Git describes", link: "/tutorials/gitops" },
          { text: "A slice instead of a StatefulSet", link: "/tutorials/slice" },
        ],
      },
      {
        text: "Planning a move",
        items: [
          { text: "Choosing how it goes", link: "/choosing" },
          { text: "Other writers", link: "/writers" },
          { text: "Dependencies", link: "/dependencies" },
          { text: "Disruption budgets", link: "/budgets" },
          { text: "Gates", link: "/gates" },
        ],
      },
      {
        text: "Applications",
        items: [
          { text: "Overview", link: "/applications/" },
          { text: "PostgreSQL", link: "/applications/postgresql" },
          { text: "NATS", link: "/applications/nats" },
          { text: "ZooKeeper", link: "/applications/zookeeper" },
        ],
      },
      {
        text: "Volumes",
        collapsed: true,
        items: [
          { text: "Overview", link: "/storage" },
          { text: "CSI drivers", link: "/drivers" },
          { text: "Another namespace (rebind)", link: "/storage/rebind" },
          { text: "Another cluster (reimport)", link: "/storage/reimport" },
          { text: "nfs", link: "/storage/nfs" },
          { text: "hostPath and local", link: "/storage/local" },
          { text: "Made by hand", link: "/storage/handmade" },
          { text: "Expanded", link: "/storage/expanded" },
          { text: "Shared by all ordinals", link: "/storage/shared" },
          { text: "Starting empty", link: "/storage/empty" },
          { text: "Before the old cluster goes", link: "/storage/before-the-old-cluster-goes" },
        ],
      },
      {
        text: "Operations",
        items: [
          { text: "Troubleshooting", link: "/troubleshooting" },
          { text: "Ways out of a blocked plan", link: "/ways-out" },
          { text: "What is supported", link: "/support" },
          { text: "Reliability", link: "/reliability" },
          { text: "Sizing", link: "/sizing" },
          { text: "Upgrade and uninstall", link: "/upgrade" },
          { text: "Security model", link: "/security" },
        ],
      },
      {
        text: "Orchestrator",
        collapsed: true,
        items: [
          { text: "Installing", link: "/orchestrator/install" },
          { text: "Running", link: "/orchestrator/running" },
          { text: "What it may do", link: "/orchestrator/security" },
        ],
      },
      {
        text: "Reference",
        items: [
          { text: "Commands", link: "/commands" },
          { text: "Command line", link: "/cli" },
          { text: "Settings of the programs in a cluster", link: "/settings" },
          { text: "Schemas of documents", link: "/schemas/" },
          { text: "Fields", link: "/fields" },
          { text: "Checks", link: "/checks" },
          { text: "Reasons", link: "/reasons" },
          { text: "Watching a move", link: "/watching" },
          { text: "The page of all plans", link: "/dashboard" },
          { text: "Notifications", link: "/notifications" },
          { text: "Annotations and labels", link: "/marks" },
          { text: "Events", link: "/events" },
          { text: "Invariants", link: "/invariants" },
          { text: "Slice controller", link: "/slicecontroller" },
        ],
      },
      {
        text: "Measured",
        collapsed: true,
        items: [
          { text: "Speed", link: "/results/speed" },
          { text: "Places", link: "/results/places" },
          { text: "End to end", link: "/results/e2e" },
          { text: "With outages", link: "/results/outages" },
          { text: "Applications, measured", link: "/results/applications" },
          { text: "Storm", link: "/results/storm" },
          { text: "Clients", link: "/results/clients" },
        ],
      },
      {
        text: "Development",
        collapsed: true,
        items: [
          { text: "Architecture", link: "/development/architecture" },
          { text: "Where to change what", link: "/development/tour" },
          { text: "Tests", link: "/development/testing" },
          { text: "Reliability: the tables", link: "/development/reliability-tables" },
          { text: "Test beds", link: "/development/testbed" },
          { text: "Documents", link: "/development/documents" },
          { text: "Roadmap", link: "/development/roadmap" },
          { text: "Tried as a newcomer", link: "/development/newcomer" },
          { text: "Requirements", link: "/requirements" },
          { text: "Releases", link: "/releases" },
          {
            text: "Decisions",
            link: "/development/decisions/",
            collapsed: true,
            items: [
              { text: "Engine", link: "/development/decisions/engine" },
              { text: "Disruption budgets", link: "/development/decisions/budgets" },
              { text: "Storage", link: "/development/decisions/storage" },
              { text: "Names", link: "/development/decisions/names" },
              { text: "Gates", link: "/development/decisions/gates" },
              { text: "Checks", link: "/development/decisions/checks" },
              { text: "Records", link: "/development/decisions/records" },
              { text: "Writes", link: "/development/decisions/writes" },
              { text: "Orchestrator", link: "/development/decisions/orchestrator" },
              { text: "Slice controller", link: "/development/decisions/slice-controller" },
              { text: "Packages", link: "/development/decisions/packages" },
              { text: "Tests", link: "/development/decisions/tests" },
            ],
          },
        ],
      },
    ],
  },
});
