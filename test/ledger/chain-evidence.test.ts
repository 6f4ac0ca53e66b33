/** The hash chain covers what other stages record, within a second of its commit. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { exportLedger, type Ledger, verifyFile, verifyLedger } from '../../src/ledger/ledger.ts';
import { EVIDENCE, ROWS, transition } from './evidence-rows.ts';
import { give, openLedgerOfInserted, useLedger } from './fixture.ts';

const rig = useLedger();

async function record(...statements: string[]): Promise<void> {
  for (const statement of statements) await rig.database.db.sql.unsafe(statement);
}

const verify = () => verifyLedger(rig.database.db, []);

async function counts() {
  const rows = await rig.database.db.sql<Record<string, number>[]>`
    select (select count(*)::int from tallyhook.batches) as batches,
      (select coalesce(sum(cardinality(row_ids)), 0)::int from tallyhook.unchained_rows) as waiting,
      (select count(*)::int from tallyhook.chained_rows c cross join unnest(c.row_ids)) as chained,
      (select count(distinct (c.source, k))::int
        from tallyhook.chained_rows c cross join unnest(c.row_ids) as k) as different`;
  return rows[0];
}

describe('Evidence', () => {
  it('Rows of every stage are in one batch, and what was not touched is verified', async () => {
    await record(...ROWS);
    expect(await counts()).toMatchObject({ batches: 0, waiting: 9 });
    await rig.runOnce();
    expect(await counts()).toEqual({ batches: 1, waiting: 0, chained: 9, different: 9 });
    expect(await verify()).toMatchObject({
      ok: true,
      count: 1n,
      transactions: 0n,
      evidence: 9n,
      findings: [],
    });
  });

  it('A second passes between two batches without postings', async () => {
    await record(transition('op_1'));
    await rig.runOnce();
    await record(transition('op_2'));
    rig.clock.advance(999);
    await rig.runOnce();
    expect(await counts()).toMatchObject({ batches: 1, waiting: 1 });
    rig.clock.advance(1);
    await rig.runOnce();
    expect(await counts()).toMatchObject({ batches: 2, waiting: 0 });
    rig.clock.advance(1_000);
    await rig.runOnce();
    expect(await counts()).toMatchObject({ batches: 2 });
  });

  it('A batch of postings takes the evidence that waits at once', async () => {
    await rig.runOnce();
    await record(transition('op_1'));
    await rig.put(give('op_1'));
    expect(await rig.runOnce()).toMatchObject({ posted: 1 });
    expect(await counts()).toMatchObject({ batches: 1, waiting: 0, chained: 1 });
    expect(await verify()).toMatchObject({ ok: true, transactions: 1n, evidence: 1n });
  });

  it('More evidence than a batch takes is in several, without a second between them', async () => {
    await record(transition('op_1', 4_500));
    for (const [more, waiting] of [
      [true, 2_500],
      [true, 500],
      [false, 0],
    ]) {
      expect(await rig.runOnce()).toMatchObject({ more });
      expect(await counts()).toMatchObject({ waiting });
    }
    expect(await verify()).toMatchObject({ ok: true, count: 3n, evidence: 4_500n });
  });

  it('Two daemons put each row in one batch', async () => {
    const { database, clock } = rig;
    const other = await openLedgerOfInserted({ db: database.db, clock, daemonId: 'dmn_2' });
    const run = async (ledger: Ledger) => {
      for (let n = 0; n < 20; n++) {
        await record(transition(`op_${n}`, 3));
        await ledger.runOnce(clock.now());
        clock.advance(1_000);
      }
    };
    await Promise.all([run(rig.ledger), run(other)]);
    clock.advance(1_000);
    await Promise.all([rig.ledger, other].map((ledger) => ledger.runOnce(clock.now())));
    expect(await counts()).toMatchObject({ waiting: 0, chained: 120, different: 120 });
    expect(await verify()).toMatchObject({ ok: true, evidence: 120n });
  });

  it('Neither a write nor a batch that is rolled back leaves a gap', async () => {
    await record(transition('op_1'));
    const undo = (...statements: string[]) =>
      rig.database.db
        .begin(async ({ sql }) => {
          for (const statement of statements) await sql.unsafe(statement);
          throw new Error('undo');
        })
        .catch(() => {});
    await undo(transition('op_2'));
    await undo(
      `insert into tallyhook.batches values (1, now(), 0, 0)`,
      'set constraints all immediate',
    );
    expect(await counts()).toEqual({ batches: 0, waiting: 1, chained: 0, different: 0 });
    await record(transition('op_3'));
    await rig.runOnce();
    expect(await counts()).toMatchObject({ batches: 1, waiting: 0, chained: 2 });
    expect(await verify()).toMatchObject({ ok: true, evidence: 2n });
  });

  it('What is recorded during a verification is no finding', async () => {
    await record(transition('op_1', 6_000));
    while ((await rig.runOnce()).more);
    let verifying = true;
    const verified = Promise.all([verify(), verify()]).finally(() => {
      verifying = false;
    });
    do {
      await record(transition('op_2'), transition('op_3'));
      rig.clock.advance(1_000);
      await rig.runOnce();
    } while (verifying);
    for (const verdict of await verified) expect(verdict).toMatchObject({ ok: true, findings: [] });
  });

  it('The lines have every column of append-only tables, and those of drifts that never change', async () => {
    await record(...ROWS);
    await rig.runOnce();
    const lines = (await exported()).map((line) => JSON.parse(line) as Record<string, string>);
    for (const table of EVIDENCE) {
      const [of] = await rig.database.owner.sql<{ columns: string[] }[]>`
        select array_agg(a.attname::text order by a.attnum) as columns from pg_attribute a
        where a.attrelid = ${`tallyhook.${table}`}::regclass and a.attnum > 0
          and not a.attisdropped and (${table} <> 'drifts' or exists (
            select from pg_trigger t
            where t.tgname = 'drifts_identity' and a.attnum = any(t.tgattr)))`;
      const line = lines.find(({ row }) => row === table.slice(0, -1)) ?? {};
      expect(Object.keys(line)).toEqual(['row', ...(of?.columns ?? [])]);
    }
  });
});

async function exported(): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-evidence-'));
  const file = join(folder, 'ledger.jsonl');
  await exportLedger(rig.database.db, (lines) => writeFile(file, lines));
  expect(await verifyFile(file, [])).toEqual(await verify());
  const lines = (await readFile(file, 'utf8')).trim().split('\n');
  await rm(folder, { recursive: true });
  return lines;
}
