/** An API with its ledger, and `tallyhook import` run as a process against it. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { openingId, requestPosting } from '../../../src/ledger/ledger.ts';
import { accountOfWallet } from '../../../src/operations/operations.ts';
import { openApi, startServer, type TestApi } from '../../api/rig.ts';
import { createDatabase, type TestDatabase } from '../../harness/database.ts';

const COMMAND = join(import.meta.dirname, '../../../src/cli/tallyhook.ts');

export interface Ran {
  code: number | null;
  out: string;
  err: string;
}

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
    rig.env = { PATH: process.env.PATH, TALLYHOOK_URL: rig.server.url, TALLYHOOK_KEY: key };
  });
  afterAll(async () => {
    await rig.server?.close();
    await rm(rig.folder, { recursive: true, force: true });
    await rig.database?.drop();
  });

  return Object.assign(rig, {
    start(...args: string[]) {
      return spawn(process.execPath, [COMMAND, 'import', ...args], rigOptions(rig));
    },
    async run(...args: string[]): Promise<Ran> {
      const child = this.start(...args);
      let [out, err] = ['', ''];
      child.stdout.setEncoding('utf8').on('data', (text) => {
        out += text;
      });
      child.stderr.setEncoding('utf8').on('data', (text) => {
        err += text;
      });
      return new Promise((resolve) => {
        child.once('close', (code) => resolve({ code, out, err }));
      });
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

function rigOptions({ folder, env }: { folder: string; env: NodeJS.ProcessEnv }) {
  return { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'] };
}
