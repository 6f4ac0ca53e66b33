/** The search for gives of an operator once a setting names its wallet. */
import { expect, it } from 'vitest';
import { WRITER } from '../../src/db/access/roles.ts';
import { connect } from '../../src/db/connect.ts';
import { openingId } from '../../src/ledger/ledger.ts';
import { listPostedGives } from '../../src/ledger/operator-wallets.ts';
import { accountOfWallet } from '../../src/operations/operations.ts';
import { completeRecords } from '../harness/recorded-rows.ts';
import { addr, give, openLedger, PLAIN, runDry, START, useLedger } from './fixture.ts';

const HOUR = 3_600_000;
const rig = useLedger({ startAt: START + HOUR });
const WALLET = addr(2);
/** Gives before the observation that the opening of the wallet rests on, and after it. */
const [BEFORE, AFTER] = [250, 450];
const OBSERVED = START + 1_000 * BEFORE;

/** Posts the gives, and the opening of the wallet that the setting will name. */
async function postGives() {
  const gives = Array.from({ length: BEFORE + AFTER }, (_, i) => {
    const at = START + 1_000 * i;
    return give(`op_${i}`, { recordedAt: at, sentAt: at, effectiveAt: at });
  });
  await rig.put(...gives);
  await openWallet(OBSERVED);
  await rig.post();
  rig.clock.advance(60_000);
}

/** Requests the opening of the wallet, which was observed then. */
const openWallet = (at: number) =>
  rig.request({
    id: openingId(WALLET),
    kind: 'opening',
    account: accountOfWallet(WALLET),
    counter: 'opening',
    amount: 0n,
    effectiveAt: at,
    effectiveBasis: 'observed',
    requestedBy: 'reconciler',
    seen: { at, version: 0n },
  });

it('Pages of the search begin where the one before ended, and end with the account', async () => {
  await postGives();
  const found: string[][] = [];
  for (let after = 0n; ; ) {
    const page = await listPostedGives(rig.database.db, '7', { since: OBSERVED, after }, 100);
    if (!page) break;
    found.push(page.ids);
    after = page.version;
  }
  expect(found.map(({ length }) => length)).toEqual([0, 0, 50, 100, 100, 100, 100]);
  expect(new Set(found.flat()).size).toBe(AFTER);
});

it('A wallet that is mapped while the ledger runs is searched for at once, and so is what was recorded without it', async () => {
  await postGives();
  const { clock, database } = rig;
  const operators = new Map<string, string>();
  const books = { ...PLAIN, operators };
  const ledger = await openLedger({ db: database.db, clock, books, daemonId: 'dmn_2' });
  await runDry(ledger, clock);
  expect(await rig.balances('operator:7')).toEqual({
    'operator:7': String(-10 * (BEFORE + AFTER)),
  });
  operators.set('7', WALLET);
  await runDry(ledger, clock);
  expect(await rig.balances('operator:7')).toEqual({ 'operator:7': String(-10 * BEFORE) });
  // A daemon that did not know of it recorded this give.
  const at = clock.now();
  await rig.put(give('op_late', { recordedAt: at, sentAt: at, effectiveAt: at }));
  await completeRecords(database.db, PLAIN);
  await runDry(ledger, clock);
  expect(await rig.balances(`wallet:${WALLET}`, 'operator:7')).toEqual({
    [`wallet:${WALLET}`]: String(-10 * (AFTER + 1)),
    'operator:7': String(-10 * BEFORE),
  });
});

it('What was recorded before the opening of the wallet is known is moved when that is posted', async () => {
  const { clock, database } = rig;
  const books = { ...PLAIN, operators: new Map([['7', WALLET]]) };
  const ledger = await openLedger({ db: database.db, clock, books, daemonId: 'dmn_2' });
  await rig.put(give('op_1', { recordedAt: START, sentAt: START, effectiveAt: START }));
  await completeRecords(database.db, PLAIN);
  await runDry(ledger, clock);
  expect(await rig.balances('operator:7')).toEqual({ 'operator:7': '-10' });
  await openWallet(START - 1);
  await runDry(ledger, clock);
  expect(await rig.balances('operator:7')).toEqual({ 'operator:7': '0' });
});

it('What was moved is not read again by later searches', async () => {
  await postGives();
  const { clock, database } = rig;
  const db = connect({ url: database.url, role: WRITER, max: 1 });
  const books = { ...PLAIN, operators: new Map([['7', WALLET]]) };
  const ledger = await openLedger({ db, clock, books, daemonId: 'dmn_2' });
  await runDry(ledger, clock);
  expect(await rig.balances(`wallet:${WALLET}`, 'operator:7')).toEqual({
    [`wallet:${WALLET}`]: String(-10 * AFTER),
    'operator:7': String(-10 * BEFORE),
  });
  const entriesRead = async () => {
    await db.sql`select pg_stat_force_next_flush()`;
    const rows = await database.owner.sql<{ n: bigint }[]>`
      select t.seq_tup_read + coalesce(t.idx_tup_fetch, 0) as n from pg_stat_user_tables t
      where t.schemaname = 'tallyhook' and t.relname = 'entries'`;
    return rows[0]?.n;
  };
  const before = await entriesRead();
  clock.advance(HOUR);
  await runDry(ledger, clock);
  expect(await entriesRead()).toBe(before);
  await db.end();
});
