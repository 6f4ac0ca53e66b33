/** A short run of kills; `npm run hostile -- --kills` is the long one. */
import { chmod } from 'node:fs/promises';
import { afterAll, expect, it } from 'vitest';
import { migrate } from '../../../../src/db/migrate.ts';
import { systemClock } from '../../../../src/kernel/clock.ts';
import { startSandbox } from '../../../../src/sandbox/sandbox.ts';
import { CLIENT } from '../../../harness/daemon.ts';
import { useFolder } from '../../../harness/folder.ts';
import { killFaultsOf, killText } from './figures.ts';
import { runKills } from './kills.ts';
import { openRestartedPostgres } from './postgres.ts';

const folder = useFolder();
await chmod(folder, 0o711);
const postgres = await openRestartedPostgres(folder);
const sandbox = await startSandbox({ ...CLIENT, seed: 1, clock: systemClock });
afterAll(async () => {
  await sandbox.close();
  await postgres.close();
});

it('Of two daemons whose processes are killed while Postgres crashes, no event is lost, and only attempts in flight come twice', async () => {
  await migrate(postgres.url);
  const figures = await runKills(
    { url: postgres.url, sandbox, restarts: [postgres.crash] },
    { seconds: 10, killsMin: 6, everyMs: 200, perS: 5, daemonEvery: 10, seed: 3 },
  );
  expect(killFaultsOf(figures), killText(figures)).toEqual([]);
  expect(figures.kills.senders + figures.kills.daemons).toBeGreaterThan(5);
}, 400_000);
