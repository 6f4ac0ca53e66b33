/** The markup of the page, without data. Views insert data as text, never as markup. */

/** Libraries that browser code imports by name, and the files of their packages. */
export const LIBRARIES = {
  preact: 'preact/dist/preact.mjs',
  'preact/hooks': 'preact/hooks/dist/hooks.mjs',
  htm: 'htm/dist/htm.mjs',
  // Its module is not minified; this one is a script, which exports nothing by itself.
  uplot: 'uplot/dist/uPlot.iife.min.js',
};

/** Two strokes of a tally and the hook that crosses them. */
const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="#2f6f5e" ' +
    'stroke-width="2" stroke-linecap="round">' +
    '<path d="M4 2v12M8 2v12M12 2v9a2.5 2.5 0 0 1-5 0"/></svg>',
)}`;

/** The path of a library among the assets. */
export function libraryPath(name: string): string {
  return `library/${name.replace('/', '-')}.js`;
}

/** @param folder under which the browser reaches the assets */
export function importMapOf(folder: string): string {
  const names = Object.keys(LIBRARIES);
  const paths = names.map((name) => [name, `${folder}/${libraryPath(name)}`]);
  return JSON.stringify({ imports: Object.fromEntries(paths) });
}

/**
 * @param folder under which the browser reaches the assets
 * @param modules assets that every view needs: they are loaded at once
 * @param values values for the page, each a `<meta>`
 * @param basePath under which the browser reaches the daemon
 */
export function shellOf(
  folder: string,
  modules: readonly string[],
  values: Readonly<Record<string, string>>,
  basePath: string,
): string {
  const first = ['preact', 'preact/hooks', 'htm'].map(libraryPath);
  const preloads = [...first, ...modules]
    .map((path) => `<link rel="modulepreload" href="${folder}/${path}">`)
    .join('\n');
  const meta = Object.entries({ ...values, 'base-path': basePath })
    .map(([name, value]) => `<meta name="tallyhook-${name}" content="${escaped(value)}">\n`)
    .join('');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${meta}<title>Tallyhook</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="${folder}/style.css">
<script type="importmap">${importMapOf(folder)}</script>
${preloads}
<link rel="preload" href="${basePath}/session" as="fetch" crossorigin>
<script type="module" src="${folder}/app.ts"></script>
</head>
<body>
<div id="app"></div>
<noscript><p class="card">This page needs scripts. The API is described at
  <a href="${basePath}/api/openapi.json">${basePath}/api/openapi.json</a>.</p></noscript>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
