/** The figures of a report are the plain sums of its operations for every history. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { addr, type Columns, DAY, HOUR, makeWorld, START, timesAt, useWorld } from './world.ts';

const world = await useWorld(makeWorld({ settings: { timeZone: 'Asia/Seoul' } }));
/** The first two days of January in Seoul, and the instants around them. */
const DAYS = [0, 1, 2].map((n) => START - 9 * HOUR + n * DAY);
const INSTANTS = DAYS.flatMap((at) => [at - 1, at, at + 1, at + 15 * HOUR]);
const LATE = START + 60 * DAY;

interface Write {
  at: number;
  kind: 'give' | 'transfer' | 'mint';
  reason: string | null;
  amount: number;
  fee: number;
  /** Of an NFT when it was burned, if it was. */
  burnedAt: number | null;
  state: 'settled' | 'accepted' | 'failed';
  /** Recorded long after it happened. */
  isLate: boolean;
}

const instant = fc.constantFrom(...INSTANTS);
const write: fc.Arbitrary<Write> = fc.record({
  at: instant,
  kind: fc.constantFrom('give', 'transfer', 'mint'),
  reason: fc.constantFrom('welcome', 'bonus', null),
  amount: fc.integer({ min: 1, max: 99 }),
  fee: fc.integer({ min: 0, max: 3 }),
  burnedAt: fc.option(instant),
  state: fc.constantFrom('settled', 'settled', 'accepted', 'failed'),
  isLate: fc.boolean(),
});

const written: Write[] = [];

async function put(one: Write): Promise<void> {
  const { at, kind, reason, amount, fee, state, isLate } = one;
  const late = { source: 'report', sent_at: null, answered_at: null, recorded_at: isoText(LATE) };
  const times = (instantOf: number) => ({ ...timesAt(instantOf), ...(isLate ? late : {}) });
  if (kind !== 'mint') {
    const payer: Columns =
      kind === 'give' ? {} : { from_addr: addr(2), operation_no: null, fee_amount: fee };
    await world.operation({ ...times(at), kind, reason_type: reason, amount, ...payer });
    written.push({ ...one, fee: kind === 'give' ? 0 : fee });
    return;
  }
  const id = written.length + 1;
  const nothing = { amount: null, operation_no: null, contract_id: 5, token_id: id };
  const nft = { ...nothing, tx_hash: `0x${id}`, state };
  await world.operation({ ...times(at), kind, ...nft });
  const burnedAt = state === 'settled' && (one.burnedAt ?? 0) > at ? one.burnedAt : null;
  if (burnedAt !== null)
    await world.operation({ ...times(burnedAt), kind: 'burn', ...nft, tx_hash: `0xb${id}` });
  if (state === 'settled') {
    const seen = { presence: 'present', observed_at: isoText(at) };
    const gone = { presence: 'absent', observed_at: isoText(LATE) };
    const absent = burnedAt === null ? seen : { ...gone, absent_since: isoText(burnedAt) };
    const base = { contract_id: 5, token_id: id, owner: addr(1), status: 1, locked: 0 };
    await world.insert('tokens', { ...base, ...absent });
  }
  written.push({ ...one, burnedAt });
}

/** What a report of these days has to say, by the operations alone. */
function expectedOf(from: number, to: number) {
  const isIn = (at: number | null) => at !== null && from <= at && at < to;
  const moved = written.filter(({ kind, at }) => kind !== 'mint' && isIn(at));
  const sums = new Map<string, { operations: number; amount: number; fees: number }>();
  for (const { kind, reason, amount, fee } of moved) {
    const sum = sums.get(`${kind} ${reason}`) ?? { operations: 0, amount: 0, fees: 0 };
    sums.set(`${kind} ${reason}`, {
      operations: sum.operations + 1,
      amount: sum.amount + amount,
      fees: sum.fees + fee,
    });
  }
  const mints = written.filter(({ kind }) => kind === 'mint');
  const writes = { settled: 0, failed: 0, pending: 0 };
  for (const { state, at, burnedAt } of mints) {
    if (isIn(at)) writes[state === 'accepted' ? 'pending' : state] += 1;
    if (isIn(burnedAt)) writes.settled += 1;
  }
  const booked = mints.filter(({ state, at }) => state === 'settled' && at < to);
  const burned = booked.filter(({ burnedAt }) => burnedAt !== null && burnedAt < to).length;
  return { sums, writes, minted: booked.length, burned };
}

it('Movements, fees, NFT writes and supply of any days are the sums of their operations', async () => {
  world.clock.set(LATE);
  await world.open(addr(2), 10_000n);
  await fc.assert(
    fc.asyncProperty(fc.array(write, { minLength: 1, maxLength: 6 }), async (writes) => {
      for (const one of writes) await put(one);
      await world.post();
      for (const [from, to] of [
        [DAYS[0], DAYS[1]],
        [DAYS[1], DAYS[2]],
        [DAYS[0], DAYS[2]],
      ] as [number, number][]) {
        const { content } = await world.report(from, to);
        const { sums, writes: counted, minted, burned } = expectedOf(from, to);
        const shown = content.movements.listed
          .filter(({ operations }) => operations > 0)
          .map(({ kind, reason_type: reason, operations, amount, fees }) => [
            `${kind} ${reason}`,
            { operations, amount: Number(amount), fees: Number(fees) },
          ]);
        expect(new Map(shown as never)).toEqual(sums);
        expect(content.tokens.writes).toEqual(counted);
        const [supply = { opening: 0, minted: 0, burned: 0 }] = content.tokens.supply.listed;
        expect(supply).toMatchObject({ opening: 0, minted, burned });
        const { movements } = content;
        const lines = await world.reports.listLines(
          (await world.report(from, to)).id,
          {},
          {
            limit: 500,
          },
        );
        const total = movements.listed.reduce((sum, { operations }) => sum + operations, 0);
        expect(lines.filter(({ operations }) => operations === 1)).toHaveLength(total);
      }
    }),
    { numRuns: 12, seed: 5 },
  );
}, 60_000);
