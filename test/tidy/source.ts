/**
 * The parsed source tree that every check of the architecture works on. A check is a pure function
 * from a tree to findings. Parsed by oxc-parser, because TypeScript 7 has no parser API.
 */
import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import {
  type Expression,
  type Node,
  parseSync,
  type TemplateLiteral,
  visitorKeys,
} from 'oxc-parser';

/** Paths from the repository's root (`src/operations/store.ts`) and the text of each file. */
export type Tree = ReadonlyMap<string, string>;

/** Every finding is one line: `path:line: what, use what instead`. */
export type Check = (tree: Tree) => string[];

type NodeType = Node['type'];
type Span = readonly [start: number, end: number];

/** How a file refers to another: for its values, its types only, or by a text that is its path. */
type Kind = 'value' | 'type' | 'path';

export interface Import {
  /** As written, `./store.ts` or `undici`. */
  specifier: string;
  /** The path it names when it is relative, from the root of the repository. */
  target: string | undefined;
  kind: Kind;
  offset: number;
  /** The names it binds or exports again; `*` is the whole module. */
  names: { theirs: string; ours: string }[];
  reexported: boolean;
}

/** A string or a template; each hole is `\u0001<index>\u0002…`, so that offsets stay true. */
export interface Text {
  text: string;
  start: number;
  holes: Expression[];
  /** The tag's last name, `sql` in `tx.sql`…``; undefined without a tag. */
  tag: string | undefined;
}

export interface Source {
  path: string;
  text: string;
  /** The top folder of src that holds it; `main` for src/main.ts; undefined outside src. */
  folder: string | undefined;
  errors: { message: string; offset: number }[];
  imports: Import[];
  texts: Text[];
  /** Three views of the text with all else blanked out; offsets are those of the text. */
  views: { code: string; texts: string; comments: string };
  all<T extends NodeType>(type: T): Extract<Node, { type: T }>[];
  at(offset: number, what: string): string;
  lineAt(offset: number): number;
}

/** The parsed files of src, in order of path. */
export function srcOf(tree: Tree): (Source & { folder: string })[] {
  return sourcesOf(tree).filter((s): s is Source & { folder: string } => s.folder !== undefined);
}

/** The folder of src that holds a path, or the name of a file that lies in src itself. */
export function folderOf(path: string | undefined): string | undefined {
  return /^src\/([^/]+?)(?:\.ts$|\/)/.exec(path ?? '')?.[1];
}

/** The name of the method that is called, `from` in `a.from(b)`. */
export function methodOf(callee: Node): string | undefined {
  return callee.type === 'MemberExpression' && callee.property.type === 'Identifier'
    ? callee.property.name
    : undefined;
}

/** True for the bare name. */
export function isNamed(node: Node, name: string): boolean {
  return node.type === 'Identifier' && node.name === name;
}

const parsed = new Map<string, Source>();

/** Every parsed TypeScript file, in order of path. A text is parsed once for all checks. */
export function sourcesOf(tree: Tree): Source[] {
  const paths = [...tree.keys()].filter((path) => path.endsWith('.ts'));
  return paths.sort().map((path) => {
    const text = tree.get(path) ?? '';
    const known = parsed.get(path);
    if (known?.text === text) return known;
    const source = parse(path, text);
    parsed.set(path, source);
    return source;
  });
}

/** By another program, in its own form. */
const GENERATED = 'library/client/schema.ts';

/** Reads the repository: its TypeScript, its migrations and its settings. */
export function treeOf(root: string): Tree {
  const code = ['src/**/*.ts', 'library/*/*.ts', 'test/**/*.ts', '*.ts'];
  const globs = [...code, 'drizzle/**/*.sql', 'config/*.yaml'];
  const paths = globSync(globs, { cwd: root, exclude: [GENERATED] });
  return new Map(paths.map((path) => [path, readFileSync(posix.join(root, path), 'utf8')]));
}

function parse(path: string, text: string): Source {
  const { program, comments, errors } = parseSync(path, text, { preserveParens: false });
  const byType = new Map<string, Node[]>();
  walk(program, undefined, (node) => {
    const same = byType.get(node.type);
    if (same) same.push(node);
    else byType.set(node.type, [node]);
  });
  const all = <T extends NodeType>(type: T) =>
    (byType.get(type) ?? []) as Extract<Node, { type: T }>[];
  const starts = [0, ...[...text.matchAll(/\n/g)].map((m) => m.index + 1)];
  const lineAt = (offset: number) => {
    const next = starts.findIndex((start) => start > offset);
    return next === -1 ? starts.length : next;
  };
  const pieces = piecesOf(all);
  const regexes = all('Literal').flatMap((n): Span[] => ('regex' in n ? [[n.start, n.end]] : []));
  const commentSpans = comments.map((c): Span => [c.start, c.end]);
  return {
    path,
    text,
    folder: folderOf(path),
    errors: errors.map((e) => ({ message: e.message, offset: e.labels[0]?.start ?? 0 })),
    imports: importsOf(path, all),
    texts: textsOf(text, all),
    views: {
      code: without(text, [...pieces, ...regexes, ...commentSpans]),
      texts: only(text, pieces),
      comments: only(text, commentSpans),
    },
    all,
    at: (offset, what) => `${path}:${lineAt(offset)}: ${what}`,
    lineAt,
  };
}

function walk(node: Node, parent: Node | undefined, visit: (node: Node) => void): void {
  if (parent) node.parent = parent;
  visit(node);
  const members = node as unknown as Record<string, Node | (Node | null)[] | null | undefined>;
  for (const key of visitorKeys[node.type] ?? []) {
    const child = members[key];
    for (const item of Array.isArray(child) ? child : [child]) if (item) walk(item, node, visit);
  }
}

function importsOf(path: string, all: Source['all']): Import[] {
  const found: Import[] = [];
  const seen = new Set<number>();
  const add = (source: Node, kind: Kind, names: Import['names'] = [], reexported = false): void => {
    seen.add(source.start);
    const specifier = 'value' in source && typeof source.value === 'string' ? source.value : '';
    const target = specifier.startsWith('.')
      ? posix.join(posix.dirname(path), specifier)
      : undefined;
    found.push({ specifier, target, kind, offset: source.start, names, reexported });
  };
  for (const n of all('ImportDeclaration')) {
    const names = n.specifiers.map((s) => ({
      theirs: s.type === 'ImportSpecifier' ? nameOf(s.imported) : importedWhole(s.type),
      ours: s.local.name,
    }));
    add(n.source, n.importKind === 'type' ? 'type' : 'value', names);
  }
  for (const n of all('ExportNamedDeclaration')) {
    const names = n.specifiers.map((s) => ({ theirs: nameOf(s.local), ours: nameOf(s.exported) }));
    if (n.source) add(n.source, n.exportKind === 'type' ? 'type' : 'value', names, true);
  }
  for (const n of all('ExportAllDeclaration')) {
    const names = [{ theirs: '*', ours: n.exported ? nameOf(n.exported) : '*' }];
    add(n.source, n.exportKind === 'type' ? 'type' : 'value', names, true);
  }
  for (const n of all('ImportExpression')) add(n.source, 'value');
  for (const n of all('TSImportType')) add(n.source, 'type');
  // A worker or a child process is named by its path: new URL('./worker.ts', import.meta.url).
  for (const n of all('Literal')) {
    const names = typeof n.value === 'string' && /^\.{1,2}\/[\w./-]+\.ts$/.test(n.value);
    if (names && !seen.has(n.start)) add(n, 'path');
  }
  return found;
}

function nameOf(name: { name: string } | { value: string }): string {
  return 'name' in name ? name.name : name.value;
}

function importedWhole(type: 'ImportDefaultSpecifier' | 'ImportNamespaceSpecifier'): string {
  return type === 'ImportDefaultSpecifier' ? 'default' : '*';
}

function textsOf(text: string, all: Source['all']): Text[] {
  const strings = all('Literal').flatMap((n): Text[] => {
    if (typeof n.value !== 'string') return [];
    const inside = text.slice(n.start + 1, n.end - 1);
    return [{ text: inside, start: n.start + 1, holes: [], tag: undefined }];
  });
  const templates = all('TemplateLiteral').map((n) => ({
    text: withHoles(text, n),
    start: n.start + 1,
    holes: n.expressions,
    tag: tagOf(n),
  }));
  return [...strings, ...templates];
}

function tagOf(template: TemplateLiteral): string | undefined {
  const { parent } = template;
  if (parent?.type !== 'TaggedTemplateExpression') return undefined;
  return parent.tag.type === 'Identifier' ? parent.tag.name : (methodOf(parent.tag) ?? '');
}

/** The inside of a template, each `${…}` replaced by its index in as many characters. */
function withHoles(text: string, template: TemplateLiteral): string {
  let inside = text.slice(template.start + 1, template.end - 1);
  for (const [from, to, index] of holesOf(template)) {
    const hole = `\u0001${index}`.padEnd(to - from, '\u0002');
    const at = from - template.start - 1;
    inside = inside.slice(0, at) + hole + inside.slice(at + to - from);
  }
  return inside;
}

/** The spans of the `${…}` of a template; a quasi's own span includes the marks around it. */
function holesOf({ quasis }: TemplateLiteral): [from: number, to: number, index: number][] {
  return quasis.slice(1).map((next, index) => {
    const before = quasis[index] ?? next;
    return [before.start + 1 + before.value.raw.length, next.start + 1, index];
  });
}

/** The insides of all strings and templates, without the holes. */
function piecesOf(all: Source['all']): Span[] {
  const strings = all('Literal').flatMap((n): Span[] =>
    typeof n.value === 'string' ? [[n.start + 1, n.end - 1]] : [],
  );
  const quasis = all('TemplateElement').map((n): Span => {
    return [n.start + 1, n.start + 1 + n.value.raw.length];
  });
  return [...strings, ...quasis];
}

/** Only these spans; the rest is \u0001, which is neither a letter nor a space. */
function only(text: string, spans: Span[]): string {
  let view = '';
  for (const [start, end] of spans.toSorted(([a], [b]) => a - b))
    view = view.padEnd(start, '\u0001') + text.slice(start, end);
  return view.padEnd(text.length, '\u0001');
}

/** All but these spans, which are blank. */
function without(text: string, spans: Span[]): string {
  let view = '';
  for (const [start, end] of spans.toSorted(([a], [b]) => a - b))
    view = (view + text.slice(view.length, start)).padEnd(end, ' ');
  return view + text.slice(view.length);
}
