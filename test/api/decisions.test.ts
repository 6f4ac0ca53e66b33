/** Decisions on outcomes by two owners, their postings, and cancelling queued operations. */
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { faultsOf, NO_FAULTS } from '../ledger/fixture.ts';
import { useApi } from './rig.ts';
import { ADDR_A, ADDR_B, accepted, aWrite, HASH, nextNumber } from './writes.ts';

const api = useApi();
let ann: string;
let bob: string;

beforeAll(async () => {
  const keyOf = async (owner: string) =>
    (await api.keys.create({ name: owner, owner, scopes: ['decide', 'gateway', 'read'] })).secret;
  ann = await keyOf('ann');
  bob = await keyOf('bob');
});
afterEach(async () => {
  expect(await faultsOf(api.database.owner)).toEqual(NO_FAULTS);
});

const now = () => api.deps.clock.now();
const move = (id: string, to: 'undecided' | 'executed' | 'not_executed' | 'settled') =>
  api.database.db.begin((tx) =>
    api.operations.move(tx, [
      {
        id,
        to,
        at: now(),
        cause: 'observations',
        evidence: { observations: ['obs_1'] },
        ...(to === 'settled' ? { settledAt: now() } : {}),
      },
    ]),
  );
/** A transfer of 100 and a fee of 1 whose answer was lost. */
async function undecided(): Promise<string> {
  const id = await api.recordLost();
  await move(id, 'undecided');
  return id;
}
/** A transfer of a token that the service accepted at that time. */
async function acceptedTransfer(endedAt: number): Promise<string> {
  const fields = { contractId: 1n, tokenId: nextNumber(), fromAddr: ADDR_A, toAddr: ADDR_B };
  const made = await api.operations.record(aWrite({ kind: 'transfer_from', fields }));
  if (!('id' in made)) throw new Error('the transfer was not recorded');
  const outcome = { class: 'accepted', txHash: HASH } as const;
  await api.operations.conclude({ operationId: made.id, outcome, answer: undefined, endedAt });
  return made.id;
}
const decide = (id: string, outcome: string, key = ann) =>
  api.call('POST', `/api/operations/${id}/decide`, {
    key,
    body: { outcome, reason: 'the receipt says so' },
  });
const approve = (id: string, key = bob, body: object = {}) =>
  api.call('POST', `/api/operations/${id}/approve`, { key, body });
const decided = async (id: string, outcome: string) => {
  expect((await decide(id, outcome)).status).toBe(201);
  const { status, body } = await approve(id);
  expect(status).toBe(200);
  return body;
};
/** The ids of the operations whose proposal waits for another owner. */
const waiting = async () => {
  const { body } = await api.call('GET', '/api/operations?proposed=true');
  const status = await api.call('GET', '/api/status');
  expect(status.body).toMatchObject({ open: { outcomes_proposed: body.data.length } });
  return body.data.map((one) => one.id);
};
const resolutionsOf = async (id: string) => {
  const rows = await api.database.owner.sql<{ body: string }[]>`
    select tallyhook.event_body(events) as body from tallyhook.events
    where subject = ${`operation:${id}`} and type = 'operation.resolved' order by subject_seq`;
  return rows.map(({ body }) => JSON.parse(body).data);
};

describe('A decision', () => {
  it('A proposed outcome takes effect when another owner approves it, and the ledger follows', async () => {
    const id = await undecided();
    const before = await api.balance(ADDR_B);
    expect(await waiting()).toEqual([]);
    const proposed = await decide(id, 'executed');
    expect(await waiting()).toEqual([id]);
    expect(proposed.body).toMatchObject({ n: 1, proposed_by: 'ann', approved_by: null });
    expect(await api.balance(ADDR_B)).toBe(before);
    const { body } = await approve(id);
    expect(body).toMatchObject({ state: 'executed', effective_basis: 'decision' });
    expect(await api.balance(ADDR_B)).toBe(before + 100n);
    const detail = await api.call('GET', `/api/operations/${id}`);
    expect(detail.body.decisions).toMatchObject([
      { n: 1, proposed_by: 'ann', approved_by: 'bob', reason: 'the receipt says so' },
    ]);
    expect(detail.body.evidence).toMatchObject({
      decided_by: 'ann',
      approved_by: 'bob',
      reason: 'the receipt says so',
    });
    expect(await resolutionsOf(id)).toMatchObject([
      { outcome: 'executed', supersedes: null, evidence: { decided_by: 'ann' } },
    ]);
  });

  it.each(['Ann', 'ann\u00a0', '\uff41\uff2e\uff2e'])(
    'An outcome is not approved by its proposer as %j',
    async (owner) => {
      const id = await undecided();
      await decide(id, 'executed');
      const { secret } = await api.keys.create({ name: 'other', owner, scopes: ['decide'] });
      expect((await approve(id, secret)).body.code).toBe('same_owner');
    },
  );

  it('Deciding not_executed leaves the ledger unchanged', async () => {
    const id = await undecided();
    const before = await api.balance(ADDR_B);
    expect(await decided(id, 'not_executed')).toMatchObject({ state: 'not_executed' });
    expect(await api.balance(ADDR_B)).toBe(before);
  });

  it('An operation can be decided again and again, and the ledger stays balanced', async () => {
    const id = await undecided();
    const [a, b] = [await api.balance(ADDR_A), await api.balance(ADDR_B)];
    for (const outcome of ['executed', 'not_executed', 'executed', 'not_executed', 'executed']) {
      await decided(id, outcome);
      const there = outcome === 'executed';
      expect([await api.balance(ADDR_A), await api.balance(ADDR_B)]).toEqual(
        there ? [a - 101n, b + 100n] : [a, b],
      );
    }
    expect((await resolutionsOf(id)).map(({ supersedes }) => supersedes)).toEqual([
      null,
      'executed',
      'not_executed',
      'executed',
      'not_executed',
    ]);
    const detail = await api.call('GET', `/api/operations/${id}`);
    expect((detail.body.decisions as unknown[]).length).toBe(5);
  });

  it('A decision reverses an operation that observations settled', async () => {
    const id = await undecided();
    await decided(id, 'executed');
    await move(id, 'settled');
    const before = await api.balance(ADDR_B);
    expect(await decided(id, 'not_executed')).toMatchObject({
      state: 'not_executed',
      settled_at: null,
    });
    expect(await api.balance(ADDR_B)).toBe(before - 100n);
  });

  it('An approval by the same owner is refused with every key of that owner', async () => {
    const id = await undecided();
    await decide(id, 'executed');
    const { secret } = await api.keys.create({ name: 'second', owner: 'ann', scopes: ['decide'] });
    for (const key of [ann, secret]) {
      const { status, body } = await approve(id, key);
      expect({ status, code: body.code }).toEqual({ status: 409, code: 'same_owner' });
    }
  });

  it('An approval that names another proposal than the newest is refused', async () => {
    const id = await undecided();
    await decide(id, 'executed');
    await decide(id, 'not_executed');
    expect((await approve(id, bob, { n: 1 })).body.code).toBe('conflict');
    expect((await approve(id, bob, { outcome: 'executed' })).body.code).toBe('conflict');
    const { body } = await approve(id, bob, { n: 2, outcome: 'not_executed' });
    expect(body.state).toBe('not_executed');
  });

  it('Of concurrent approvals one succeeds', async () => {
    const id = await undecided();
    await decide(id, 'executed');
    const answers = await Promise.all([approve(id), approve(id), approve(id)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409]);
    expect((await resolutionsOf(id)).length).toBe(1);
  });

  it('An answer of the service before the approval overrides the proposal', async () => {
    const id = await undecided();
    await decide(id, 'not_executed');
    await api.operations.conclude(accepted(id, 9_999n, now()));
    const { status, body } = await approve(id);
    expect({ status, code: body.code, state: body.state }).toEqual({
      status: 409,
      code: 'conflict',
      state: 'accepted',
    });
  });
});

describe('A proposal is refused', () => {
  it.each([
    ['is being sent', () => api.record()],
    ['is unknown', () => api.recordLost()],
    [
      'was refused by the service',
      async () => {
        const id = await api.record();
        await api.operations.conclude({
          ...accepted(id, 10_000n, now()),
          outcome: { class: 'rejected', status: 406, code: '198', message: 'no' },
        });
        return id;
      },
    ],
  ])('A proposal is refused for an operation that %s', async (_, make) => {
    const { status, body } = await decide(await make(), 'not_executed');
    expect({ status, code: body.code }).toEqual({ status: 409, code: 'conflict' });
    expect(body.detail).toMatch(/: \w+/);
  });

  it.each([
    ['executed', 'settled'],
    ['not_executed', 'failed'],
  ])(
    'An accepted NFT write that the chain did not end is decided as %s and %s',
    async (outcome, state) => {
      const id = await acceptedTransfer(now() - 2 * 3_600_000);
      expect(await decided(id, outcome)).toMatchObject({ state, tx_hash: HASH });
      expect(await resolutionsOf(id)).toEqual([]);
      expect((await decide(id, outcome)).body.code).toBe('conflict');
    },
  );

  it('What the service accepted is taken back by two owners, settled or not', async () => {
    for (const isSettled of [false, true]) {
      const id = await api.record();
      await api.operations.conclude(accepted(id, 10_001n + BigInt(isSettled), now()));
      if (isSettled) await move(id, 'settled');
      expect(await decided(id, 'not_executed')).toMatchObject({ state: 'not_executed' });
      expect(await resolutionsOf(id)).toHaveLength(1);
    }
  });

  it.each([
    ['how the chain ended an accepted NFT write', 'accepted', 'executed'],
    ['that the chain failed an accepted NFT write', 'accepted', 'not_executed'],
    ['that a settled NFT write is taken back', 'settled', 'not_executed'],
  ] as const)(
    'A proposal %s waits for another owner, and is counted',
    async (_title, state, to) => {
      const id = await acceptedTransfer(now() - 2 * 3_600_000);
      if (state === 'settled') await move(id, 'settled');
      expect(await waiting()).not.toContain(id);
      await decide(id, to);
      expect(await waiting()).toContain(id);
      await approve(id);
      expect(await waiting()).not.toContain(id);
    },
  );

  it('A settled NFT write is taken back by two owners', async () => {
    const id = await acceptedTransfer(now() - 2 * 3_600_000);
    await move(id, 'settled');
    expect(await decided(id, 'not_executed')).toMatchObject({ state: 'not_executed' });
    expect(await resolutionsOf(id)).toHaveLength(1);
  });

  it('An NFT write that the chain may still end is not decided', async () => {
    const { status, body } = await decide(await acceptedTransfer(now()), 'executed');
    expect({ status, code: body.code }).toEqual({ status: 409, code: 'conflict' });
    expect(body.detail).toContain('the chain may end it');
  });

  it('A proposal is refused for the present outcome or for an unknown id', async () => {
    const id = await undecided();
    await decided(id, 'executed');
    expect((await decide(id, 'executed')).body.code).toBe('conflict');
    const none = 'op_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b';
    expect((await decide(none, 'executed')).status).toBe(404);
    expect((await approve(none)).status).toBe(404);
    expect((await approve(id)).body.code).toBe('conflict');
  });

  it.each([{ outcome: 'settled', reason: 'x' }, { outcome: 'executed' }, { reason: 'x' }])(
    'A proposal without a valid outcome and reason is refused: %j',
    async (body) => {
      const answer = await api.call('POST', `/api/operations/${await undecided()}/decide`, {
        body,
      });
      expect(answer.body.code).toBe('invalid_request');
    },
  );
});

describe('A queued operation', () => {
  const queued = async () => {
    const made = await api.operations.record(
      aWrite({ owner: 'ann', expiresAt: now() + 60_000, queue: true }),
    );
    if (!('queued' in made)) throw new Error('it was not queued');
    return made.queued.id;
  };
  const cancel = (id: string, key: string) => api.call('DELETE', `/api/operations/${id}`, { key });

  it('Its owner or an admin can cancel a queued operation, which is never sent', async () => {
    const [first, second] = [await queued(), await queued()];
    expect((await cancel(first, bob)).body.code).toBe('forbidden');
    const { status, body } = await cancel(first, ann);
    expect({ status, state: body.state }).toEqual({ status: 200, state: 'cancelled' });
    expect((await cancel(first, ann)).body.code).toBe('conflict');
    expect((await cancel(second, await api.keyFor('admin'))).body.state).toBe('cancelled');
    expect(await api.operations.claimQueued(now(), 10)).toEqual([]);
  });

  it('A queued operation is listed with its expiry and cannot be decided', async () => {
    const id = await queued();
    const { body } = await api.call('GET', '/api/operations?state=queued', { key: ann });
    expect(body.data).toMatchObject([{ id, expires_at: expect.stringMatching(/Z$/) }]);
    expect((await decide(id, 'executed')).body.detail).toContain('DELETE');
  });
});
