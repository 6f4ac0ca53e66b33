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

export interface Assets {
  /** By their path. */
  byPath: Map<string, () => Asset>;
  /** What every view needs: `app.ts`, the kit, and what they import. */
  first: string[];
  /** Of all their contents. */
  version: string;
}

/**
 * Each asset is made when it is first asked for: all at once would keep the writes of the process
 * waiting for most of a second.
 */
export function findAssets(): Assets {
  const packages = createRequire(import.meta.url);
  const folderOf = (file: string) => {
    const name = file.split('/')[0] ?? '';
    // Packages do not export every file of theirs.
    const main = packages.resolve(name);
    return main.slice(0, main.lastIndexOf(join('node_modules', name)));
  };
  const sources = new Map<string, string>();
  const read = (file: string) => {
    const source = sources.get(file) ?? readFileSync(file, 'utf8');
    sources.set(file, source);
    return source;
  };
  const library = (file: string) =>
    read(join(folderOf(file), 'node_modules', file))
      .replace(SOURCE_MAP, '')
      .replace(LINES_OF_COMMENT, '');
  const webFiles = globSync('**/*.ts', { cwd: WEB }).sort();
  const loadedBy = (paths: readonly string[]) =>
    importedBy(
      paths.map((path) => join(WEB, path)),
      read,
    );
  const own = loadedBy(webFiles).map((file): [string, () => Asset] => [
    pathOf(file),
    once(() => assetOf(SCRIPT, moduleOf(read(file), pathOf(file)))),
  ]);
  const libraries = Object.entries(LIBRARIES).map(([name, file]): [string, () => Asset] => {
    const text = library(file);
    const whole = file.includes('.iife.') ? `${text}\nexport default uPlot;` : text;
    return [libraryPath(name), once(() => assetOf(SCRIPT, whole))];
  });
  const ownStyle = read(join(WEB, 'style.css')).replace(COMMENTS, '').replace(INDENTATION, '');
  const style = [library('uplot/dist/uPlot.min.css'), ownStyle].join('\n');
  const kit = webFiles.filter((path) => path === 'app.ts' || path.startsWith('kit/'));
  const first = loadedBy(kit).map(pathOf);
  const version = createHash('sha256')
    .update(process.version)
    .update(read(import.meta.filename));
  for (const source of sources.values()) version.update(source);
  return {
    byPath: new Map([
      ...own,
      ...libraries,
      ['style.css', once(() => assetOf('text/css; charset=utf-8', style))],
    ]),
    first,
    version: version.digest('base64url').slice(0, 16),
  };
}

/** From pages, the files of `resources/` stand beside them. */
function pathOf(file: string): string {
  return file.startsWith(WEB) ? relative(WEB, file) : `resources/${relative(RESOURCES, file)}`;
}

function once(make: () => Asset): () => Asset {
  let made: Asset | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** These files, with those that they load in turn before they run. */
function importedBy(
  files: readonly string[],
  read: (file: string) => string,
  found = new Set<string>(),
): string[] {
  for (const file of files.filter((one) => !found.has(one))) {
    found.add(file);
    const paths = [...read(file).matchAll(IMPORT)].map(([, path = '']) => path);
    importedBy(
      paths.map((path) => join(dirname(file), path)),
      read,
      found,
    );
  }
  return [...found];
}

/** An import of more than types. */
const IMPORT = /^(?:import|export) (?!type\b)[^;]*? from '(\.[^']+)';$/gm;

/** A module of ours, without its indentation: only texts of resources have one that is shown. */
function moduleOf(source: string, path: string): string {
  const up = '../'.repeat(path.split('/').length - 1) || './';
  const text = withoutTypes(source).replace(/(from ')(?:\.\.\/)+(resources\/)/g, `$1${up}$2`);
  return path.startsWith('resources/') ? text : text.replace(INDENTATION, '');
}

/** A twentieth of what is sent, although compressed. */
const INDENTATION = /^ +/gm;
const COMMENTS = /\/\*.*?\*\//gs;

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

/** What is sent of a text. */
export function assetOf(type: string, text: string): Asset {
  const bytes = Uint8Array.from(Buffer.from(text));
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
  return { type, etag, bytes, gzipped: Uint8Array.from(gzipSync(bytes, { level: 9 })) };
}
