/**
 * The rule of a write's legs exists in TypeScript and in SQL: random writes get the same from both.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { asJson } from '../../src/db/connect.ts';
import {
  type Effect,
  type EffectSettings,
  effectsOf,
  type Operation,
} from '../../src/operations/operations.ts';
import { LEDGER_SETTING, ledgerSetting } from '../../src/reports/reports.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { addr } from '../reports/world.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

const ADDRESSES = [addr(1), addr(2), addr(1).toUpperCase(), addr(3)];
const address = fc.constantFrom(...ADDRESSES);
const party = fc.oneof(
  { weight: 8, arbitrary: address },
  fc.constantFrom(null, '', '0x1', `${addr(1).slice(1)}\u00e9`, `${addr(1)} `),
);
const whole = fc.oneof(
  { weight: 3, arbitrary: fc.bigInt({ min: 0n, max: 10n ** 60n }) },
  { weight: 3, arbitrary: fc.bigInt({ min: 1n, max: 5n }) },
  fc.constantFrom(-1n, 0n, null),
);
const fee = fc.oneof({ weight: 2, arbitrary: fc.constantFrom(0n, null) }, whole);
const write = fc.record({
  kind: fc.constantFrom('give', 'receive_from', 'transfer', 'transfer', 'mint', 'other'),
  fromAddr: party,
  toAddr: party,
  operationNo: fc.oneof(fc.constantFrom(7n, 10n ** 40n, -1n), fc.constant(null)),
  amount: whole,
  feeAmount: fee,
});
const books: fc.Arbitrary<EffectSettings> = fc.record({
  feeMode: fc.constantFrom('on_top', 'deducted'),
  operators: fc.constantFrom(
    new Map<string, string>(),
    new Map([['7', addr(3)]]),
    new Map([
      ['7', addr(1)],
      [String(10n ** 40n), addr(4)],
    ]),
  ),
  feesAddr: fc.option(address, { nil: undefined }),
  collectionAddr: fc.option(address, { nil: undefined }),
});

/** What one account moves by, whatever its spelling; accounts that end at zero are left out. */
function summed(effects: readonly Effect[]): Record<string, string> {
  const sums = new Map<string, bigint>();
  for (const { account, amount } of effects) {
    const key = account.toLowerCase();
    sums.set(key, (sums.get(key) ?? 0n) + amount);
  }
  const moving = [...sums].filter(([, sum]) => sum !== 0n).sort();
  return Object.fromEntries(moving.map(([key, sum]) => [key, sum.toString()]));
}

function legsInCode(operation: unknown, settings: EffectSettings): Effect[] {
  try {
    return effectsOf(operation as Operation, settings);
  } catch {
    return [];
  }
}

test('tallyhook.effects says of any write what legsOf says', async () => {
  const seen = { posted: 0, refused: 0 };
  const batch = fc.tuple(books, fc.array(write, { minLength: 50, maxLength: 80 }));
  await fc.assert(
    fc.asyncProperty(batch, async ([settings, writes]) => {
      const rows = writes.map((w, i) => ({ ...w, id: `op_${i}` }));
      const undo = Symbol('undo');
      const found = new Map<string, Effect[]>();
      const work = database.owner.begin(async ({ sql }) => {
        await sql`insert into tallyhook.installation (name, value, set_at)
          values (${LEDGER_SETTING}, ${ledgerSetting(settings)}, now())`;
        await sql`
          insert into tallyhook.operations (id, kind, state, source, owner, key_id, fingerprint,
            key_held, method, path, request_body, from_addr, to_addr, operation_no, amount,
            fee_amount, recorded_at)
          select id, kind, 'accepted', 'gateway', 'o', 'k', 'f', false, 'POST', '/', '', "fromAddr",
            "toAddr", "operationNo", amount, "feeAmount", now()
          from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, kind text, "fromAddr" text,
            "toAddr" text, "operationNo" numeric, amount numeric, "feeAmount" numeric)`;
        const effects = await sql<(Effect & { operationId: string })[]>`
          select operation_id, account, amount from tallyhook.effects`;
        for (const { operationId: id, ...effect } of effects)
          found.set(id, [...(found.get(id) ?? []), effect]);
        throw undo;
      });
      await work.catch((error: unknown) => expect(error).toBe(undo));
      for (const row of rows) {
        const effects = legsInCode(row, settings);
        expect(summed(found.get(row.id) ?? [])).toEqual(summed(effects));
        seen[effects.length > 0 ? 'posted' : 'refused'] += 1;
      }
    }),
    { numRuns: 40 },
  );
  // Not a comparison of nothing with nothing.
  expect(Math.min(seen.posted, seen.refused)).toBeGreaterThan(100);
});
