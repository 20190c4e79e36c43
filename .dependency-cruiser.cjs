/**
 * Which room may import which (CONTRIBUTING.md, Rooms). A room may use the rooms of earlier rows, never its
 * neighbours in the same row.
 */
const rows = [
  ["model"],
  ["linux"],
  ["cpython", "native", "segment", "gpu", "formats", "recording", "kubernetes", "lint", "plan"],
  ["ledger"],
  ["holders", "diagnose"],
  ["record"],
  ["inspect", "store"],
  ["gates", "sanitizers", "allocators", "server", "collect"],
  ["cli"],
];

/** One rule for each room: what it imports from src/ belongs to the room itself or to an earlier row. */
const roomRules = rows.flatMap((row, index) =>
  row.map((room) => ({
    name: `${room}-imports-downwards`,
    severity: "error",
    from: { path: `^src/${room}/` },
    to: { path: "^src/", pathNot: `^src/(${[room, ...rows.slice(0, index).flat()].join("|")})/` },
  })),
);

module.exports = {
  forbidden: [
    ...roomRules,
    {
      name: "recording-uses-model-only",
      severity: "error",
      from: { path: "^src/recording/" },
      to: { path: "^src/", pathNot: "^src/(recording|model)/" },
    },
    {
      name: "kubernetes-uses-model-only",
      severity: "error",
      from: { path: "^src/kubernetes/" },
      to: { path: "^src/", pathNot: "^src/(kubernetes|model)/" },
    },
    {
      name: "lint-uses-model-only",
      severity: "error",
      from: { path: "^src/lint/" },
      to: { path: "^src/", pathNot: "^src/(lint|model)/" },
    },
    {
      // A server is a machine that runs none of the programs: it reads no process.
      name: "documents-of-recordings-need-no-recorder",
      severity: "error",
      from: { path: "^src/(inspect/recorded|store|server)/" },
      to: { path: "^src/(record|holders|linux|cpython|native|segment|inspect/live)/" },
    },
    {
      // Of one room alone: scripts/checks/import_structure.mjs.
      name: "commands-import-an-index",
      severity: "error",
      from: { path: "^src/cli/commands/" },
      to: { path: "^src/", pathNot: "^src/(cli|model)/|^src/[^/]+/index\\.ts$" },
    },
    {
      name: "every-file-has-a-room",
      severity: "error",
      from: { path: "^src/", pathNot: `^src/(${rows.flat().join("|")})/` },
      to: {},
    },
    {
      name: "web-uses-model-and-plan-only",
      severity: "error",
      from: { path: "^web/", pathNot: "\\.test\\.tsx?$" },
      to: { path: "^(src|test|scripts|bench)/", pathNot: "^src/(model|plan)/" },
    },
    {
      name: "sources-use-no-tests",
      severity: "error",
      from: { path: "^(src|web)/", pathNot: "\\.test\\.tsx?$" },
      to: { path: "^(test|scripts|bench)/|\\.test\\.tsx?$" },
    },
    {
      name: "sources-use-no-development-packages",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.test\\.ts$" },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"] },
    },
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    {
      // The page computes plans, too: only files/ and the index read files.
      name: "plan-runs-in-the-page",
      severity: "error",
      from: { path: "^src/plan/", pathNot: "^src/plan/(files/|index\\.ts$)|\\.test\\.ts$" },
      to: { path: "^src/plan/files/" },
    },
    {
      name: "plan-without-node",
      severity: "error",
      from: { path: "^src/plan/", pathNot: "^src/plan/files/|\\.(test|fixture)\\.ts$" },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "every-import-is-there",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(dist|node_modules)/" },
    enhancedResolveOptions: {
      conditionNames: ["import", "node", "default", "types"],
      exportsFields: ["exports"],
    },
  },
};
