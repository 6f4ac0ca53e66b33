/**
 * Who may import whom, types included: the architecture as tables. Change a table before the code.
 * A boundary that proves wrong is moved here, early, and on purpose.
 */
import { type Import, roomOf, roomsOf, type Tree } from './source.ts';

/**
 * What each folder of src may import beside `kernel`. `journal` is its door, its tables and its
 * events; `journal/types` only with `import type`; `journal/tables` only tables.ts; `journal/door`
 * only the door. A stage is written `*`.
 */
export const MAY_IMPORT: Record<string, string> = {
  kernel: '',
  db: '',
  upstream: '',
  sandbox: '',
  keys: 'db',
  outbox: 'db',
  journal: 'db outbox upstream/types',
  ledger: 'db journal',
  observer: 'db upstream journal ledger outbox',
  reconciler: 'db upstream/types journal ledger observer outbox',
  webhooks: 'db outbox',
  reports: 'db outbox ledger */tables',
  gateway: 'db keys upstream journal observer',
  api: 'db keys */door',
  console: 'db keys */door',
  cli: 'db keys * gateway api console daemon sandbox',
  daemon: 'db keys * gateway api console cli sandbox',
  main: 'daemon',
};

/** The stages, in the order in which a fact passes them. */
const STAGES = 'upstream journal ledger observer reconciler outbox webhooks reports'.split(' ');

/** Who may import a library; everybody else asks the file or the folder that is named. */
const LIBRARIES: { library: string; only: string[]; use: string }[] = [
  { library: 'pino', only: ['src/kernel/log.ts'], use: 'kernel/log.ts' },
  { library: 'prom-client', only: ['src/kernel/metrics.ts'], use: 'kernel/metrics.ts' },
  { library: 'node-cron', only: ['src/daemon/'], use: 'a schedule of daemon/' },
  {
    library: 'undici',
    only: ['src/upstream/', 'src/webhooks/', 'src/cli/'],
    use: 'the door of upstream/, or a function given as an argument',
  },
  { library: 'postgres', only: ['src/db/'], use: 'db/' },
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

/** A computed name (which reads as an empty one), an alias, our own package, or a whole path. */
const HIDDEN = /^(?:$|#|\/|file:|tallyhook(?:\/|$))/;

/** Folders import only what their row of MAY_IMPORT names. */
export function wrongDirections(tree: Tree): string[] {
  return roomsOf(tree).flatMap((source) => {
    const row = MAY_IMPORT[source.room];
    if (row === undefined)
      return [source.at(0, `${source.room} has no row in MAY_IMPORT, use a folder that has one`)];
    return source.imports.flatMap((i) => {
      const wrong = wrongDirection(source.room, i);
      return wrong ? [source.at(i.offset, wrong)] : [];
    });
  });
}

function wrongDirection(room: string, { specifier, target, kind }: Import): string | undefined {
  if (kind === 'path') return undefined;
  if (HIDDEN.test(specifier)) return 'imports a file by another name, use its relative path';
  if (target?.startsWith('test/')) return 'src imports a test, use a file of src';
  const other = roomOf(target);
  if (!other || other === room || other === 'kernel') return undefined;
  const words = (MAY_IMPORT[room] ?? '').split(' ').filter(Boolean);
  const stage = STAGES.includes(other);
  if (words.includes(other) || (stage && words.includes('*'))) return undefined;
  if (words.includes(`${other}/types`))
    return kind === 'type' ? undefined : `imports ${other} as a value, use import type`;
  // Which files of the stage these two words mean is for `wrongDoors` to say.
  if (stage && (words.includes('*/tables') || words.includes('*/door'))) return undefined;
  return `${room} imports ${other}, use an argument or its row: ${['kernel', ...words].join(' ')}`;
}

/**
 * Across folders only doors (`journal/journal.ts`), `tables.ts` and `outbox/events.ts` are
 * imported. The kernel is open, and so is db but for the inside of the embedded server.
 */
export function wrongDoors(tree: Tree): string[] {
  return roomsOf(tree).flatMap(({ room, imports, at }) =>
    imports.flatMap(({ target, kind, offset }) => {
      const other = roomOf(target);
      const inside = !other || other === room || other === 'main' || kind === 'path';
      if (!target || inside) return [];
      const shown = shownTo(room, other, target);
      return shown.includes(target)
        ? []
        : [at(offset, `reaches into ${inSrc(target)}, use ${shown.map(inSrc).join(' or ')}`)];
    }),
  );
}

/** The files of `other` that `room` may see, asked for one of them. */
function shownTo(room: string, other: string, target: string): string[] {
  if (other === 'kernel') return [target];
  if (other === 'db')
    return target.startsWith('src/db/embedded-') ? ['src/db/embedded.ts'] : [target];
  const door = `src/${other}/${other}.ts`;
  const tables = `src/${other}/tables.ts`;
  const events = other === 'outbox' ? ['src/outbox/events.ts'] : [];
  const words = (MAY_IMPORT[room] ?? '').split(' ');
  if (STAGES.includes(other) && !words.includes(other)) {
    if (words.includes('*/tables')) return [tables];
    if (words.includes('*/door')) return [door, ...events];
  }
  return [door, tables, ...events];
}

function inSrc(path: string): string {
  return path.slice('src/'.length);
}

/** Each library has the importers that LIBRARIES names. */
export function strayLibraries(tree: Tree): string[] {
  return roomsOf(tree).flatMap(({ path, imports, at }) =>
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
