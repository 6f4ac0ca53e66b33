/** An API with its ledger, and `tallyhook import` run as a process against it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
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
  };
  beforeAll(async () => {
    rig.database = await createDatabase();
    rig.api = await openApi(rig.database.db);
    rig.server = await startServer(rig.api.api);
    rig.folder = await mkdtemp(join(tmpdir(), 'tallyhook-import-'));
    const key = await rig.api.keyFor('manage', 'read');
    rig.env = { TALLYHOOK_URL: rig.server.url, TALLYHOOK_KEY: key };
  });
  afterAll(async () => {
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
