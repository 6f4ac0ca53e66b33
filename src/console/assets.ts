/**
 * The files that the browser loads: our TypeScript with its types stripped, the style sheet, and
 * the modules of npm packages; code of ours without any comment, theirs without lines of them.
 */
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { LIBRARIES, libraryPath } from './shell.ts';

export interface Asset {
  type: string;
  etag: string;
  bytes: Uint8Array<ArrayBuffer>;
  gzipped: Uint8Array<ArrayBuffer>;
}

const WEB = join(import.meta.dirname, 'web');
/** What people and programs see, in which the browser shows it too. */
const RESOURCES = join(import.meta.dirname, '../resources');
const SCRIPT = 'text/javascript; charset=utf-8';

/**
 * The assets by their path under `/console/`. Each is made when it is first asked for: all at once
 * would keep the writes of the process waiting for most of a second.
 */
export function findAssets(): Map<string, () => Asset> {
  const packages = createRequire(import.meta.url);
  const folderOf = (file: string) => {
    const name = file.split('/')[0] ?? '';
    // Packages do not export every file of theirs.
    const main = packages.resolve(name);
    return main.slice(0, main.lastIndexOf(join('node_modules', name)));
  };
  const read = (file: string) =>
    readFileSync(join(folderOf(file), 'node_modules', file), 'utf8')
      .replace(SOURCE_MAP, '')
      .replace(LINES_OF_COMMENT, '');
  const own = globSync('**/*.ts', { cwd: WEB }).map((path): [string, () => Asset] => [
    path,
    once(() => assetOf(SCRIPT, moduleOf(join(WEB, path), path))),
  ]);
  const resource = (file: string): [string, () => Asset] => {
    const path = `resources/${relative(RESOURCES, file)}`;
    return [path, once(() => assetOf(SCRIPT, moduleOf(file, path)))];
  };
  const libraries = Object.entries(LIBRARIES).map(([name, file]): [string, () => Asset] => [
    libraryPath(name),
    once(() => {
      const text = read(file);
      return assetOf(SCRIPT, file.includes('.iife.') ? `${text}\nexport default uPlot;` : text);
    }),
  ]);
  const style = once(() => {
    const texts = [read('uplot/dist/uPlot.min.css'), readFileSync(join(WEB, 'style.css'), 'utf8')];
    return assetOf('text/css; charset=utf-8', texts.join('\n'));
  });
  return new Map([
    ...own,
    ...importedBy(own.map(([path]) => join(WEB, path))).map(resource),
    ...libraries,
    ['style.css', style],
  ]);
}

function once(make: () => Asset): () => Asset {
  let made: Asset | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** The files of `resources/` that these load, with what they load in turn. */
function importedBy(files: readonly string[], found = new Set<string>()): string[] {
  for (const file of files) {
    const imports = readFileSync(file, 'utf8').matchAll(IMPORT);
    const loaded = [...imports].map(([, path = '']) => join(dirname(file), path));
    const more = loaded.filter((one) => one.startsWith(RESOURCES) && !found.has(one));
    for (const one of more) found.add(one);
    importedBy(more, found);
  }
  return [...found];
}

/** An import of more than types. */
const IMPORT = /^(?:import|export) (?!type\b)[^;]*? from '(\.[^']+)';$/gm;

/** A module of ours; from pages, those of `resources/` stand beside them. */
function moduleOf(file: string, path: string): string {
  const up = '../'.repeat(path.split('/').length - 1) || './';
  return withoutTypes(readFileSync(file, 'utf8')).replace(
    /(from ')(?:\.\.\/)+(resources\/)/g,
    `$1${up}$2`,
  );
}

/** Licences stand in blocks, and stay in what is not ours. */
const LINES_OF_COMMENT = /^[ \t]*\/\/.*\n/gm;

/** Written anew by the compiler, so that texts keep lines of theirs that look like comments. */
function withoutTypes(source: string): string {
  const emitWarning = process.emitWarning;
  // The function is experimental, of which each start would warn.
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(source, { mode: 'transform' });
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Their maps are not served. */
const SOURCE_MAP = /\n\/\/# sourceMappingURL=\S+\s*$/;

function assetOf(type: string, text: string): Asset {
  const bytes = Uint8Array.from(Buffer.from(text));
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
  return { type, etag, bytes, gzipped: Uint8Array.from(gzipSync(bytes, { level: 9 })) };
}
