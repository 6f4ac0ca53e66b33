/**
 * Which folder may import which, types included. Change a table here before the code; a boundary
 * that proves wrong is moved here first.
 */
import { folderOf, type Import, srcOf, type Tree } from './source.ts';

/**
 * What each folder of src may import beside `kernel` and `resources`. `operations` stands for its
 * public module and its tables, `upstream/types` for type imports only, `*` for every stage,
 * `STAGE/tables` for tables.ts alone and `STAGE/module` for the public module alone.
 */
const MAY_IMPORT: Record<string, string> = {
  kernel: '',
  resources: '',
  db: '',
  upstream: '',
  sandbox: '',
  keys: 'db',
  outbox: 'db',
  operations: 'db outbox upstream/types',
  ledger: 'db operations',
  observer: 'db upstream operations ledger outbox',
  reconciler: 'db upstream/types operations ledger observer outbox',
  imports: 'db operations ledger reconciler',
  webhooks: 'db outbox',
  reports: 'db outbox ledger operations */tables',
  gateway: 'db keys upstream operations observer',
  api: 'db keys */module',
  console: 'db keys */module',
  cli: 'db keys * gateway api console daemon sandbox',
  daemon: 'db keys * gateway api console cli sandbox',
  main: 'daemon',
};

/** The stages, in the order in which a write passes them. */
export const STAGES =
  'upstream operations ledger observer reconciler imports outbox webhooks reports'.split(' ');

/** Who may import a library; everybody else uses the file or folder that is named. */
const LIBRARIES: { library: string; only: string[]; use: string }[] = [
  { library: 'pino', only: ['src/kernel/telemetry/log.ts'], use: 'kernel/telemetry/log.ts' },
  {
    library: 'prom-client',
    only: ['src/kernel/telemetry/metrics.ts'],
    use: 'kernel/telemetry/metrics.ts',
  },
  { library: 'node-cron', only: ['src/daemon/'], use: 'a schedule of daemon/' },
  {
    library: 'undici',
    only: ['src/upstream/', 'src/webhooks/', 'src/reports/files/', 'src/cli/'],
    use: 'upstream/upstream.ts, or a function given as an argument',
  },
  {
    library: 'aws4fetch',
    only: ['src/reports/files/', 'src/webhooks/delivery/destinations/'],
    use: 'reports/files/bucket.ts',
  },
  ...['@platformatic/kafka', '@nats-io', 'amqplib'].map((library) => ({
    library,
    only: ['src/webhooks/delivery/destinations/'],
    use: 'a destination of webhooks/',
  })),
  { library: 'postgres', only: ['src/db/'], use: 'db/' },
  { library: 'drizzle-orm', only: ['src/db/'], use: 'db/drizzle.ts' },
  {
    library: 'csv-parse',
    only: ['src/imports/', 'src/api/routes/admin/watches.ts'],
    use: 'imports/file/rows.ts',
  },
  { library: 'commander', only: ['src/cli/'], use: 'a command of cli/' },
  { library: 'yaml', only: ['src/daemon/'], use: 'the Config that daemon/ read' },
  {
    library: '@hono/node-server',
    only: ['src/daemon/', 'src/sandbox/', 'src/gateway/'],
    use: 'a Hono app that daemon/ serves',
  },
  { library: 'standardwebhooks', only: ['src/cli/'], use: 'the signing of webhooks/' },
  {
    library: 'node:timers',
    only: ['src/kernel/clock.ts'],
    use: 'pause or after of kernel/clock.ts',
  },
  { library: 'node:process', only: [], use: 'the global, where it is allowed' },
];

/** A computed name (parsed as an empty one), an alias, our own package, or an absolute path. */
const HIDDEN = /^(?:$|#|\/|file:|tallyhook(?:\/|$))/;

const EMBEDDED = 'src/db/embedded/';

/** Folders import only what their row of MAY_IMPORT names. */
export function wrongDirections(tree: Tree): string[] {
  return srcOf(tree).flatMap((source) => {
    if (MAY_IMPORT[source.folder] === undefined)
      return [source.at(0, `${source.folder} has no row in MAY_IMPORT, use a folder that has one`)];
    return source.imports.flatMap((i) => {
      const wrong = wrongDirection(source.folder, i);
      return wrong ? [source.at(i.offset, wrong)] : [];
    });
  });
}

function rowOf(folder: string): string[] {
  return (MAY_IMPORT[folder] ?? '').split(' ').filter(Boolean);
}

function wrongDirection(folder: string, { specifier, target, kind }: Import): string | undefined {
  if (kind === 'path') return undefined;
  if (HIDDEN.test(specifier)) return 'imports a file by another name, use its relative path';
  if (target?.startsWith('test/')) return 'src imports a test, use a file of src';
  const other = folderOf(target);
  if (!other || other === folder || other === 'kernel') return undefined;
  if (other === 'resources' && folder !== 'kernel') return undefined;
  const row = rowOf(folder);
  const stage = STAGES.includes(other);
  if (row.includes(other) || (stage && row.includes('*'))) return undefined;
  if (row.includes(`${other}/types`))
    return kind === 'type' ? undefined : `imports ${other} as a value, use import type`;
  // `pastPublicModules` checks which file of the stage it is.
  if (stage && (row.includes('*/tables') || row.includes('*/module'))) return undefined;
  return `${folder} imports ${other}, use an argument or its row: ${['kernel', ...row].join(' ')}`;
}

/**
 * Across folders only public modules (`operations/operations.ts`), `tables.ts` and
 * `outbox/events.ts` are imported. The kernel and db are open, but for the inside of db/embedded.
 */
export function pastPublicModules(tree: Tree): string[] {
  return srcOf(tree).flatMap(({ path, folder, imports, at }) =>
    imports.flatMap(({ target, kind, offset }) => {
      if (!target || kind === 'path') return [];
      const open = openTo(path, folder, target);
      return open.includes(target)
        ? []
        : [at(offset, `reaches into ${inSrc(target)}, use ${open.map(inSrc).join(' or ')}`)];
    }),
  );
}

/** The files that `path` may import when it asks for `target`. */
function openTo(path: string, folder: string, target: string): string[] {
  if (target.startsWith(EMBEDDED))
    return path.startsWith(EMBEDDED) ? [target] : [`${EMBEDDED}embedded.ts`];
  const other = folderOf(target);
  if (!other || [folder, 'kernel', 'resources', 'db', 'main'].includes(other)) return [target];
  const publicModule = `src/${other}/${other}.ts`;
  const tables = `src/${other}/tables.ts`;
  const events = other === 'outbox' ? ['src/outbox/events.ts'] : [];
  const row = rowOf(folder);
  if (STAGES.includes(other) && !row.includes(other)) {
    if (row.includes(`${other}/types`)) return [publicModule, tables];
    if (row.includes('*/tables')) return [tables];
    if (row.includes('*/module')) return [publicModule, ...events];
  }
  return [publicModule, tables, ...events];
}

function inSrc(path: string): string {
  return path.slice('src/'.length);
}

/** Each library has the importers that LIBRARIES names. */
export function strayLibraries(tree: Tree): string[] {
  return srcOf(tree).flatMap(({ path, imports, at }) =>
    imports.flatMap(({ specifier, offset }) => {
      const row = LIBRARIES.find(
        ({ library }) => specifier === library || specifier.startsWith(`${library}/`),
      );
      return !row || row.only.some((place) => path.startsWith(place))
        ? []
        : [at(offset, `imports ${row.library}, use ${row.use}`)];
    }),
  );
}
