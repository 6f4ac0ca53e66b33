/** An outcome, its transition and its event are one commit; nothing is guessed. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonText } from '../../src/kernel/json.ts';
import {
  FOLLOWS,
  findOperation,
  listTransitions,
  operationFields,
  outcomeOf,
  type State,
  statesBefore,
} from '../../src/operations/operations.ts';
import { STATES } from '../../src/resources/operations/operation.ts';
import { addBrokenEndpoint } from '../outbox/rig.ts';
import { conclusion, useOperations } from './rig.ts';

const rig = useOperations();

/** The shortest way to each state, from `sending`. */
const WAYS: Partial<Record<State, State[]>> = {
  sending: [],
  accepted: ['accepted'],
  rejected: ['rejected'],
  unknown: ['unknown'],
  executed: ['unknown', 'executed'],
  not_executed: ['unknown', 'not_executed'],
  undecided: ['unknown', 'undecided'],
  settled: ['accepted', 'settled'],
  failed: ['accepted', 'failed'],
};

async function reached(state: State): Promise<string> {
  const id = await rig.record();
  for (const to of WAYS[state] ?? []) await rig.move(id, to);
  return id;
}

/** The states in which the transitions of an operation lead, each from the one before. */
async function replayed(id: string): Promise<string | null> {
  let state: string | null = null;
  for (const { fromState, toState } of await listTransitions(rig.database.db, id)) {
    expect(fromState).toBe(state);
    if (fromState !== null) expect(statesBefore(toState as State)).toContain(fromState);
    state = toState;
  }
  return state;
}

describe('A conclusion', () => {
  it.each([
    ['accepted', 'accepted', 'executed', null],
    ['rejected', 'rejected', 'not_executed', { class: 'refused', status: 406, code: '198' }],
    ['unavailable', 'rejected', 'not_executed', { class: 'unavailable', code: 'maintenance' }],
    ['not_sent', 'rejected', 'not_executed', { class: 'not_sent', code: 'connection_refused' }],
    ['unknown', 'unknown', 'open', { class: 'unknown', code: 'reset' }],
  ] as const)(
    'A conclusion of class %s leads to %s, outcome %s, with one event',
    async (cls, state, outcome, error) => {
      const id = await rig.record();
      rig.clock.advance(20);
      const more = cls === 'accepted' ? { txLogNo: 2n ** 70n } : {};
      const concluded = await rig.conclude(id, cls, more);
      expect(concluded).toMatchObject({ id, state, outcome, answeredAt: rig.clock.now() });
      expect(await findOperation(rig.database.db, id)).toEqual(concluded);
      expect(await rig.conclude(id, cls, more)).toEqual(concluded);
      expect(await rig.eventsOf(id)).toMatchObject([
        {
          type: `operation.${state}`,
          operation_id: id,
          state,
          outcome,
          amount: '10',
          error,
          tx_log_no: cls === 'accepted' ? '1180591620717411303424' : null,
          subject_seq: 1,
        },
      ]);
    },
  );

  it.each(
    (['give', 'transfer', 'mint', 'mint_sequential', 'burn', 'other'] as const).flatMap((kind) =>
      (['accepted', 'rejected', 'unknown'] as const).map((cls) => [kind, cls] as const),
    ),
  )(
    'The event of a %s that is %s, recorded in the statement that concludes it, says what its row says',
    async (kind, cls) => {
      const fields = {
        fromAddr: '0xFROM',
        toAddr: '0xTo',
        operationNo: 1n,
        contractId: 2n ** 65n,
        tokenId: kind === 'mint_sequential' ? null : 7n,
        amount: 2n ** 70n,
        feeAmount: 3n,
        reasonType: 'a "reason"',
        tokenUri: 'ipfs://x',
        metaData: '{}',
        extraData: null,
      };
      const id = await rig.record({
        kind,
        fields,
        reference: 'ref',
        idempotencyKey: `${kind} ${cls}`,
      });
      rig.clock.advance(20);
      const more = cls === 'accepted' ? { txHash: '0xAB', tokenId: 9n, txLogNo: undefined } : {};
      const concluded = await rig.conclude(id, cls, more);
      const [{ type, subject_seq, ...data }] = await rig.eventsOf(id);
      expect([type, subject_seq]).toEqual([`operation.${cls}`, 1]);
      expect(data).toEqual(JSON.parse(jsonText(operationFields(concluded))));
      expect(concluded).toEqual(await findOperation(rig.database.db, id));
    },
  );

  it('An event says what happened although another move came before the conclusion', async () => {
    const id = await rig.record();
    await rig.move(id, 'unknown');
    const concluded = await rig.conclude(id, 'accepted');
    const events = await rig.eventsOf(id);
    expect(events).toMatchObject([
      { type: 'operation.accepted', subject_seq: 2, state: 'accepted' },
    ]);
    expect(concluded.eventSeq).toBe(2n);
  });

  it('200 conclusions at once share commits, and each keeps its own number', async () => {
    const { begun } = rig.first;
    const ids = await Promise.all(Array.from({ length: 200 }, () => rig.record()));
    const before = begun();
    const done = await Promise.all(
      ids.map((id, i) => rig.conclude(id, 'accepted', { txLogNo: BigInt(i) })),
    );
    expect(done.map(({ id, txLogNo }) => [id, txLogNo])).toEqual(
      ids.map((id, i) => [id, BigInt(i)]),
    );
    expect(begun() - before).toBeLessThanOrEqual(8);
  });

  it('An error message is cut to 500 characters, without characters that Postgres refuses', async () => {
    const odd = { code: '1\0', message: `bad \0 \ud800${'x'.repeat(9_000)}` };
    const { errorCode, errorMessage } = await rig.conclude(await rig.record(), 'rejected', odd);
    expect([errorCode, errorMessage?.length]).toEqual(['1\ufffd', 500]);
    expect(errorMessage).toMatch(/^bad \ufffd \ufffdx+$/);
  });

  it('A conclusion whose event cannot be committed changes nothing', async () => {
    const { operations } = rig.first;
    const mend = await addBrokenEndpoint(rig.database.owner);
    const id = await rig.record();
    const accepted = conclusion(id, 'accepted', rig.clock.now());
    await expect(operations.conclude(accepted)).rejects.toMatchObject({ code: '22P02' });
    expect([await rig.stateOf(id), await rig.eventsOf(id)]).toEqual(['sending', []]);
    await mend();
    await operations.conclude(accepted);
    expect([await rig.stateOf(id), (await rig.eventsOf(id)).length]).toEqual(['accepted', 1]);
  });

  it('A conclusion about an operation that does not exist fails', async () => {
    await expect(rig.conclude('op_none', 'accepted')).rejects.toMatchObject({ code: 'internal' });
  });
});

describe('A move', () => {
  it.each(Object.keys(WAYS) as State[])(
    'A move from %s leads only to the states that may follow',
    async (from) => {
      for (const to of STATES) {
        const id = await reached(from);
        const allowed = FOLLOWS[from].includes(to);
        // Only people may take back what was accepted or is settled.
        if (/settled|accepted/.test(from) && to === 'not_executed')
          expect(await rig.move(id, to)).toEqual([]);
        expect((await rig.move(id, to, { decided: true })).length).toBe(allowed ? 1 : 0);
        expect(await rig.stateOf(id)).toBe(allowed ? to : from);
      }
    },
  );

  it('The transitions of an operation, replayed, give its state', async () => {
    const steps = fc.array(fc.constantFrom(...STATES), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(steps, async (path) => {
        const id = await rig.record();
        for (const to of path) await rig.move(id, to);
        const state = await replayed(id);
        const operation = await findOperation(rig.database.db, id);
        expect(operation).toMatchObject({ state, outcome: outcomeOf(state as State) });
      }),
      { numRuns: 25 },
    );
  });

  it('Of several moves of one operation at once, each takes effect once or not at all', async () => {
    const id = await reached('unknown');
    const moved = await Promise.all(
      (['executed', 'not_executed', 'undecided'] as const).flatMap((to) =>
        [1, 2].map(() => rig.move(id, to)),
      ),
    );
    expect(await listTransitions(rig.database.db, id)).toHaveLength(2 + moved.flat().length);
    expect(await rig.stateOf(id)).toBe(await replayed(id));
  });

  it('A move leaves fields as they are that it does not name', async () => {
    const id = await rig.record();
    await rig.conclude(id, 'accepted', { txLogNo: 2n ** 69n });
    rig.clock.advance(9);
    const settledAt = rig.clock.now();
    expect(await rig.move(id, 'settled', { settledAt })).toMatchObject([
      { txLogNo: 2n ** 69n, effectiveBasis: 'answer', settledAt, evidence: null },
    ]);
  });
});

describe("The service's own answer", () => {
  it.each(['unknown', 'undecided', 'executed', 'not_executed'] as const)(
    'A late answer of the service replaces the state %s',
    async (state) => {
      for (const cls of ['accepted', 'rejected'] as const) {
        const id = await reached(state);
        expect((await rig.conclude(id, cls)).state).toBe(cls);
        expect((await rig.eventsOf(id)).at(-1)?.type).toBe(`operation.${cls}`);
      }
    },
  );

  it.each(['settled', 'failed', 'accepted'] as const)(
    'A late refusal changes nothing in state %s',
    async (state) => {
      expect((await rig.conclude(await reached(state), 'rejected')).state).toBe(state);
    },
  );
});

describe('A repeated tx_log_no', () => {
  const numbers = { txAppNo: 8n, txLogNo: 4711n };
  const quarantineReason = async (id: string) => {
    const rows = await rig.database.owner.sql<{ quarantineReason: string | null }[]>`
      select quarantine_reason from tallyhook.due_postings where operation_id = ${id}`;
    return rows[0]?.quarantineReason;
  };
  const accepted = async (more: object) =>
    (await rig.conclude(await rig.record(), 'accepted', more)).id;

  it('An answer with a number that another operation has is kept, and its posting quarantined', async () => {
    const first = await accepted(numbers);
    const again = await accepted(numbers);
    const otherApp = await accepted({ ...numbers, txAppNo: 9n });
    expect(await Promise.all([first, again, otherApp].map(quarantineReason))).toEqual([
      null,
      'repeated_tx_log_no',
      null,
    ]);
    expect((await findOperation(rig.database.db, again))?.txLogNo).toBe(4711n);
  });

  it('Two moves of one commit with the same number are both quarantined', async () => {
    const ids = await Promise.all([rig.record(), rig.record()]);
    const to = { to: 'accepted' as const, at: rig.clock.now(), cause: 'test' };
    await rig.moveAll(ids.map((id) => ({ id, ...to, txAppNo: 8n, txLogNo: 4712n })));
    for (const id of ids) expect(await quarantineReason(id)).toBe('repeated_tx_log_no');
  });

  it('Of two answers at once with one number, one is quarantined', async () => {
    for (let round = 0; round < 20; round++) {
      const ids = await Promise.all([rig.record(), rig.record({}, rig.other)]);
      const same = { txAppNo: 3n, txLogNo: BigInt(9_000 + round) };
      const daemons = [rig.first, rig.other];
      await Promise.all(
        ids.map((id, i) =>
          daemons[i]?.operations.conclude(conclusion(id, 'accepted', rig.clock.now(), same)),
        ),
      );
      const reasons = await Promise.all(ids.map(quarantineReason));
      expect(new Set(reasons)).toEqual(new Set(['repeated_tx_log_no', null]));
    }
  });

  it.each([
    ['that its token has', { expectedAppNo: 3n, ownAppNo: 4n }, 3n],
    ['of our own token, if the caller sent its own', { ownAppNo: 4n }, 4n],
    ['that the answer names', { expectedAppNo: 3n }, 3n, 3n],
    ['that is not known yet', {}, null],
  ])('An answer has the app number %s', async (_title, known, txAppNo, named?: bigint) => {
    const given = conclusion(await rig.record(), 'accepted', rig.clock.now());
    const outcome = { class: 'accepted' as const, txLogNo: 99n };
    const answered = { ...outcome, ...(named === undefined ? {} : { txAppNo: named }) };
    const concluded = rig.first.operations.conclude({ ...given, ...known, outcome: answered });
    expect(await concluded).toMatchObject({ txAppNo });
  });

  it('An answer with the app number of another app is kept, and its posting quarantined', async () => {
    const given = conclusion(await rig.record(), 'accepted', rig.clock.now(), { txAppNo: 4n });
    const concluded = await rig.first.operations.conclude({ ...given, expectedAppNo: 3n });
    expect(concluded).toMatchObject({ state: 'accepted', txAppNo: 4n });
    expect(await quarantineReason(concluded.id)).toBe('foreign_tx_app_no');
  });
});
