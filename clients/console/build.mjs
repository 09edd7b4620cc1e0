/** Builds the console into the gateway's package: `node build.mjs [--watch]`. Its output is committed, so that users need no Node. */

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";

import * as esbuild from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const OUT = join(HERE, "../../services/gateway/phronesis_gateway/console/web");
const PUBLIC = "/console/assets/";
/** Bytes of compressed JavaScript that all pages but the graph may load together. */
const LIMIT = 350_000;
/** Chunks with this in their name are the graph's drawing, which only its page loads. */
const GRAPH = "graph-canvas";

/** The messages of each language as one object: `messages/LANGUAGE/AREA.json`, keys `AREA.name`. */
function languages() {
  const root = join(HERE, "messages");
  const found = {};
  for (const language of readdirSync(root).sort()) {
    found[language] = {};
    for (const file of readdirSync(join(root, language)).sort()) {
      const area = file.replace(/\.json$/, "");
      for (const [key, text] of Object.entries(JSON.parse(readFileSync(join(root, language, file), "utf8")))) {
        if (!key.startsWith(`${area}.`)) throw new Error(`messages/${language}/${file}: ${key} has to begin with ${area}.`);
        found[language][key] = text;
      }
    }
  }
  for (const [language, texts] of Object.entries(found)) {
    const missing = Object.keys(found.en).filter((key) => !(key in texts));
    const unknown = Object.keys(texts).filter((key) => !(key in found.en));
    if (missing.length + unknown.length) throw new Error(`messages/${language}: missing ${missing}; not in en: ${unknown}`);
  }
  return found;
}

/** Writes the messages under names that change with what is in them, and returns where each language is. */
function writeMessages() {
  const where = {};
  for (const [language, texts] of Object.entries(languages())) {
    const content = JSON.stringify(texts);
    const name = `messages-${language}-${createHash("sha256").update(content).digest("hex").slice(0, 8)}.json`;
    writeFileSync(join(OUT, name), content);
    where[language] = PUBLIC + name;
  }
  return where;
}

function writePage(outputs, messages) {
  const [script, made] = Object.entries(outputs).find(([, made]) => made.entryPoint === "src/main.tsx");
  const address = (path) => PUBLIC + path.split("/").pop();
  const attribute = JSON.stringify(messages).replaceAll('"', "&quot;");
  writeFileSync(
    join(OUT, "index.html"),
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="languages" content="${attribute}">
<title>Phronesis</title>
<link rel="icon" href="${PUBLIC}icon.svg">
<link rel="stylesheet" href="${address(made.cssBundle)}">
<script type="module" src="${address(script)}"></script>
</head>
<body><div id="app"></div><noscript>The console needs JavaScript.</noscript></body>
</html>
`,
  );
}

/** The licences of all packages that are in the output, as their authors want them kept. */
function writeLicences(inputs) {
  const packages = new Set(
    Object.keys(inputs)
      .map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
      .filter(Boolean),
  );
  const parts = [...packages].sort().map((name) => {
    const folder = join(HERE, "node_modules", name);
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    const text = file ? readFileSync(join(folder, file), "utf8").trim() : "";
    return `${name} ${about.version} (${about.license})\n\n${text}\n`;
  });
  writeFileSync(join(OUT, "LICENSES.txt"), parts.join(`\n${"-".repeat(80)}\n\n`));
}

function finish(result) {
  if (result.errors.length) return;
  const { outputs, inputs } = result.metafile;
  writePage(outputs, writeMessages());
  writeLicences(inputs);
  writeFileSync(join(OUT, "icon.svg"), readFileSync(join(HERE, "src/icon.svg")));
  let total = 0;
  for (const [path] of Object.entries(outputs).filter(([path]) => path.endsWith(".js"))) {
    const size = brotliCompressSync(readFileSync(join(HERE, path))).length;
    if (!path.includes(GRAPH)) total += size;
    console.log(`${String(size).padStart(8)}  ${path.split("/").pop()}`);
  }
  console.log(`${String(total).padStart(8)}  compressed JavaScript without the graph (limit ${LIMIT})`);
  if (total > LIMIT) throw new Error("the console's JavaScript is over its limit");
}

const options = {
  absWorkingDir: HERE,
  entryPoints: ["src/main.tsx"],
  outdir: OUT,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  metafile: true,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  publicPath: PUBLIC,
  jsx: "automatic",
  jsxImportSource: "preact",
  plugins: [
    {
      name: "finish",
      setup(build) {
        build.onStart(() => {
          rmSync(OUT, { recursive: true, force: true });
          mkdirSync(OUT, { recursive: true });
        });
        build.onEnd(finish);
      },
    },
  ],
};

if (process.argv.includes("--watch")) await (await esbuild.context(options)).watch();
else await esbuild.build(options);
