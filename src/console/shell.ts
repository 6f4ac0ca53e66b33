/** The markup of the page, without data. Views insert data as text, never as markup. */

/** Libraries that browser code imports by name, and the files of their packages. */
export const LIBRARIES = {
  preact: 'preact/dist/preact.mjs',
  'preact/hooks': 'preact/hooks/dist/hooks.mjs',
  htm: 'htm/dist/htm.mjs',
  // Its module is not minified; this one is a script, which exports nothing by itself.
  uplot: 'uplot/dist/uPlot.iife.min.js',
};

/** The path under `/console/` of a library. */
export function libraryPath(name: string): string {
  return `library/${name.replace('/', '-')}.js`;
}

export const IMPORT_MAP = JSON.stringify({
  imports: Object.fromEntries(
    Object.keys(LIBRARIES).map((name) => [name, `/console/${libraryPath(name)}`]),
  ),
});

/**
 * @param modules paths under `/console/` that every view needs: they are loaded at once
 * @param values values for the page, each a `<meta>`
 */
export function shellOf(
  modules: readonly string[],
  values: Readonly<Record<string, string>> = {},
): string {
  const first = ['preact', 'preact/hooks', 'htm'].map(libraryPath);
  const preloads = [...first, ...modules]
    .map((path) => `<link rel="modulepreload" href="/console/${path}">`)
    .join('\n');
  const meta = Object.entries(values)
    .map(([name, value]) => `<meta name="tallyhook-${name}" content="${escaped(value)}">\n`)
    .join('');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${meta}<title>Tallyhook</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/console/style.css">
<script type="importmap">${IMPORT_MAP}</script>
${preloads}
<script type="module" src="/console/app.ts"></script>
</head>
<body>
<div id="app"></div>
<noscript><p class="card">This page needs scripts. The API is described at
  <a href="/api/openapi.json">/api/openapi.json</a>.</p></noscript>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
