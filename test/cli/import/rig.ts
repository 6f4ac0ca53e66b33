/** An API with its ledger, and `tallyhook import` run as a process against it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { makeSchedule, type Schedule } from '../../../src/daemon/workers/schedule.ts';
import { makeWakeUps } from '../../../src/daemon/workers/wake-up.ts';
import { openingId, requestPosting } from '../../../src/ledger/ledger.ts';
import { accountOfWallet } from '../../../src/operations/operations.ts';
import { openApi, startServer, type TestApi } from '../../api/rig.ts';
import { type Ended, endOf, startCommand } from '../../harness/command.ts';
import { createDatabase, type TestDatabase } from '../../harness/database.ts';

/** Opens it before the first test of a file. Use it inside tests only. */
export function useImports() {
  const rig = {} as {
    database: TestDatabase;
    api: TestApi;
    folder: string;
    env: NodeJS.ProcessEnv;
    server: Awaited<ReturnType<typeof startServer>>;
    schedule: Schedule;
  };
  beforeAll(async () => {
    rig.database = await createDatabase();
    Object.assign(rig, await openWithWorker(rig.database.db));
    rig.server = await startServer(rig.api.api);
    rig.folder = await mkdtemp(join(tmpdir(), 'tallyhook-import-'));
    const key = await rig.api.keyFor('manage', 'read');
    rig.env = { TALLYHOOK_URL: rig.server.url, TALLYHOOK_KEY: key };
  });
  afterAll(async () => {
    await rig.schedule?.stop();
    await rig.server?.close();
    await rm(rig.folder, { recursive: true, force: true });
    await rig.database?.drop();
  });

  return Object.assign(rig, {
    start: (...args: string[]) => startCommand(rig.env, ['import', ...args], { cwd: rig.folder }),
    run(...args: string[]): Promise<Ended> {
      return endOf(this.start(...args));
    },
    write(name: string, lines: readonly (object | string)[]): Promise<void> {
      const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
      return writeFile(join(rig.folder, name), `${texts.join('\n')}\n`);
    },
    /** The wallet was first observed then, with that balance. */
    async open(addr: string, balance: bigint, at: number): Promise<void> {
      const { db, clock } = rig.api;
      const request = {
        id: openingId(addr),
        kind: 'opening' as const,
        account: accountOfWallet(addr),
        counter: 'opening',
        amount: balance,
        effectiveAt: at,
        effectiveBasis: 'observed',
        requestedBy: 'reconciler',
        seen: { at, version: 0n },
      };
      await db.begin((tx) => requestPosting(tx, request, clock.now()));
    },
    async post(): Promise<void> {
      const { ledger, clock } = rig.api;
      while ((await ledger.runOnce(clock.now())).posted > 0);
    },
    async countOperations(): Promise<number> {
      const rows = await rig.database.db.sql<{ n: number }[]>`
        select count(*)::int as n from tallyhook.operations`;
      return rows[0]?.n ?? 0;
    },
  });
}

/** The worker of a daemon that does it, which the API wakes. */
async function openWithWorker(db: TestDatabase['db']) {
  const wakeUps = makeWakeUps();
  const api = await openApi(db, (deps) => ({ ...deps, wake: wakeUps.wake }));
  const { imports, clock, log, metrics } = api;
  const schedule = makeSchedule({
    workers: [{ name: 'imports', intervalMs: 1_000, pass: imports.runOnce }],
    clock,
    log,
    metrics,
    wakeUps,
    passTimeoutMs: 60_000,
  });
  schedule.start();
  return { api, schedule };
}
