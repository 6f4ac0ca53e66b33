/**
 * `node test/db/releases/make.ts`, at a release: writes the database of this release, with the
 * migrations that made it, its catalogue of events and its program as committed to
 * `test/db/releases/<version>`. Commit them; the tests of every later release begin with them.
 */
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { catalogue } from '../../../src/api/routes/delivery/events.ts';
import { connect } from '../../../src/db/connect.ts';
import { openTemporaryServer } from '../../harness/temporary-server.ts';
import { archive, readFinance } from './archive.ts';
import { keepProgram } from './program.ts';
import { makeTraffic } from './traffic.ts';

const ROOT = join(import.meta.dirname, '../../..');
const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const folder = join(import.meta.dirname, version);

const server = await openTemporaryServer('release');
try {
  const url = await server.createDatabase('release');
  await makeTraffic(url);
  await mkdir(folder, { recursive: true });
  // What drizzle-kit remembers is of the present program only.
  const filter = (path: string) => !path.endsWith('_snapshot.json');
  await cp(join(ROOT, 'drizzle'), join(folder, 'drizzle'), { recursive: true, filter });
  const db = connect({ url, max: 1 });
  const rows = await archive(db);
  await writeFile(join(folder, 'rows.ndjson'), `${rows.join('\n')}\n`);
  await writeFile(join(folder, 'finance.json'), `${JSON.stringify(await readFinance(db))}\n`);
  await db.end();
  const types = catalogue().map((each) => JSON.stringify(each));
  await writeFile(join(folder, 'event-types.json'), `[\n${types.join(',\n')}\n]\n`);
  await keepProgram(version);
  process.stdout.write(`${rows.length} rows in test/db/releases/${version}; commit them\n`);
} finally {
  await server.close();
}
