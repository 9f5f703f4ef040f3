// Bundles each page of src/ into dist/, which pip users get; `--check` compares instead of writing.

import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";

const { outputFiles } = await build({
  entryPoints: ["explorer", "asking"].map((name) => `src/${name}.ts`),
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "accelvizPage",
  target: "es2022",
  charset: "utf8",
  outdir: "dist",
  outExtension: { ".js": ".mjs" },
  write: false,
});
for (const { path, text } of outputFiles) {
  if (!process.argv.includes("--check")) await writeFile(path, text);
  else if (text !== await readFile(path, "utf8").catch(() => "")) {
    console.error(`${path} is not what src/ builds: run "make page"`);
    process.exitCode = 1;
  }
}
