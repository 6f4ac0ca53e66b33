/**
 * Every section of a report is of its period: what happened in it by when it took effect, and what
 * was open at its end as known at the cut-off. What happens in other months changes none of it.
 */
import { describe, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { keepDayEnd } from '../../src/ledger/ledger.ts';
import {
  addr,
  balancedWorld,
  type Columns,
  DAY,
  HOUR,
  START,
  timesAt,
  useEachWorld,
} from './world.ts';

const world = useEachWorld(balancedWorld);
const END = START + 31 * DAY;

const HASH = (n: number) => `0x${n.toString(16).padStart(64, '0')}`;

/** An NFT write of contract 5 at an instant. */
function nft(kind: string, token: number, at: number, columns: Columns = {}) {
  const base = { amount: null, operation_no: null, contract_id: 5, to_addr: addr(1) };
  const own = { token_id: token, tx_hash: HASH(token), state: 'settled', ...timesAt(at) };
  return world.operation({ kind, ...base, ...own, ...columns });
}

function token(contract: number, id: number, at: number, columns: Columns = {}) {
  const base = { contract_id: contract, token_id: id, owner: addr(1), status: 1, locked: 0 };
  return world.insert('tokens', {
    ...base,
    observed_at: isoText(at),
    presence: 'present',
    ...columns,
  });
}

const target = (address: string, at: number) =>
  world.insert('targets', {
    name: `wallet:${address}`,
    kind: 'wallet',
    addr: address,
    next_poll_at: isoText(at),
    added_at: isoText(at),
  });

/** Something of each kind that a report shows, at an instant and shortly after. */
async function busyTimes(at: number, n: number): Promise<void> {
  const lost = { answered_at: null, effective_at: null };
  const write = (columns: Columns) => world.operation({ ...timesAt(at), ...columns });
  await write({ amount: 11, to_addr: addr(n), reason_type: `month ${n}` });
  await write({
    kind: 'transfer',
    from_addr: addr(2),
    operation_no: null,
    amount: 3,
    fee_amount: 1,
  });
  await write({ state: 'unknown', ...lost, amount: 9, send_deadline_at: isoText(at) });
  await write({ state: 'undecided', ...lost, amount: 8 });
  await write({ kind: 'other', amount: null, state: 'executed', to_addr: null });
  await write({ amount: 4, quarantine_reason: 'kept back', to_addr: addr(n) });
  await nft('mint', 10 * n, at);
  await nft('mint', 10 * n + 1, at, { state: 'failed' });
  await nft('transfer_from', 10 * n, at + 1, { state: 'accepted', from_addr: addr(1) });
  await world.post();
  await token(5, 10 * n, at);
  await token(n, 1, at);
  await token(n, 2, at, { presence: 'absent', absent_since: isoText(at) });
  await target(addr(100 + n), at);
  const seen = { observed_at: isoText(at), observation_ended_at: isoText(at) };
  const fresh = { ...seen, consistent_at: isoText(at), quiet_at: isoText(at) };
  await world.wallet(addr(200 + n), 7n, { ...fresh, opened_at: isoText(at) });
  await world.wallet(addr(300 + n), 7n, { ...seen, opened_at: null, verdict: 'unopened' });
  await world.wallet(addr(400 + n), 0n, {
    ...fresh,
    opened_at: isoText(at),
    vanished_at: isoText(at),
  });
  const drift = { suspected_at: isoText(at), opened_at: isoText(at), window_to: isoText(at) };
  await world.drift(addr(200 + n), 2n, { ...drift, window_from: isoText(at) });
  await world.drift(addr(200 + n), 5n, { ...drift, window_from: null });
  const ended = await world.drift(addr(1), 6n, { ...drift, window_from: isoText(at) });
  await world.sql(`update tallyhook.drifts set state = 'returned', closed_by = '{}',
    closed_at = '${isoText(at + HOUR)}' where id = '${ended}'`);
  await world.sql(`insert into tallyhook.unprocessed_observations (target, kind, observation_id,
    unchanged_since, started_at, ended_at, result, process_at, failures, problem)
    select 'wallet:${n}', 'wallet', 'obs_1', at, at, at, 'seen', at, 5, 'broken'
    from (select '${isoText(at)}'::timestamptz as at) x`);
}

/** The content without what was known when it was made. */
async function sectionsOf(from: number, to: number) {
  const { cut_off: _, ...sections } = (await world.report(from, to)).content;
  return sections;
}

/** All numbers in a content, with their names. */
function numbersIn(value: unknown, name = ''): [string, number | bigint][] {
  if (typeof value === 'number') return [[name, value]];
  if (typeof value === 'string') return /^-?\d+$/.test(value) ? [[name, BigInt(value)]] : [];
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, inner]) => numbersIn(inner, `${name}.${key}`));
}

it('A report of a month before any data says zero everywhere', async () => {
  world.clock.set(END + 3 * DAY);
  await busyTimes(START + 2 * DAY, 7);
  const { format: _, ...sections } = await sectionsOf(START - 40 * DAY, START - 9 * DAY);
  expect(sections.headline).toBe('balanced');
  expect(numbersIn(sections).filter(([, n]) => BigInt(n) !== 0n)).toEqual([]);
  expect(sections.coverage.oldest_check_at).toBeNull();
});

describe('A report that is asked again later', () => {
  it('says the same after events of later months', async () => {
    world.clock.set(START + 10 * DAY);
    await busyTimes(START + 2 * DAY, 7);
    world.clock.set(END + HOUR);
    const observed = `observed_at = '${isoText(END)}', observation_ended_at = '${isoText(END)}',
      consistent_at = '${isoText(END)}' where addr in ('${addr(1)}', '${addr(2)}')`;
    await world.sql(`update tallyhook.wallets set observed_balance = observed_balance + case addr
      when '${addr(1)}' then 3 else -4 end, ${observed}`);
    const first = await sectionsOf(START, END);
    expect(first.tokens.writes).toEqual({ settled: 1, failed: 1, pending: 1 });
    expect(first.breaks.total).toBeGreaterThan(5);

    await busyTimes(END, 8);
    // An amount that is no longer the one that was posted.
    await world.sql(`update tallyhook.operations set amount = 12 where reason_type = 'month 8'`);
    world.clock.set(END + 40 * DAY);
    await busyTimes(END + 35 * DAY, 9);
    const late = { source: 'report', sent_at: null, recorded_at: isoText(world.clock.now()) };
    await world.operation({ ...timesAt(END), ...late, amount: 30, to_addr: addr(1) });
    await nft('transfer_from', 90, END + HOUR, { ...late, from_addr: addr(1) });
    await world.post();
    expect(await sectionsOf(START, END)).toEqual(first);
    while (await keepDayEnd(world.db, world.clock.now(), 'UTC'));
    expect(await sectionsOf(START, END)).toEqual(first);
    // Observed again, when the balance had changed by what took effect since.
    const again = `'${isoText(END + 39 * DAY)}'`;
    await world.sql(`update tallyhook.wallets w set observed_balance = a.balance,
      observed_at = ${again}, observation_ended_at = ${again}, consistent_at = ${again}
      from tallyhook.accounts a where a.name = 'wallet:' || w.addr
        and w.addr in ('${addr(1)}', '${addr(2)}')`);
    expect(await sectionsOf(START, END)).toEqual(first);
  });

  it('counts NFT writes that were reported late in the month in which they happened', async () => {
    world.clock.set(END + 20 * DAY);
    const imported = { source: 'report', sent_at: null, answered_at: null, from_addr: addr(1) };
    for (const id of [1, 2, 3])
      await nft('transfer_from', id, START, {
        ...imported,
        recorded_at: isoText(world.clock.now()),
      });
    await world.post();
    const writesOf = async (from: number, to: number) => (await sectionsOf(from, to)).tokens.writes;
    expect(await writesOf(START, END)).toEqual({ settled: 3, failed: 0, pending: 0 });
    expect(await writesOf(END, END + 28 * DAY)).toEqual({ settled: 0, failed: 0, pending: 0 });
  });
});
