/** Listing and reading operations. */
import { beforeAll, describe, expect, it } from 'vitest';
import { pollWallet } from './polls.ts';
import { useApi } from './rig.ts';
import { ADDR_A, ADDR_B, accepted, answerLost, HASH } from './writes.ts';

const HUGE = 9_007_199_254_740_993_000_000_001n;
const api = useApi();
const ids: string[] = [];

beforeAll(async () => {
  for (let n = 0n; n < 5n; n++)
    ids.push(await api.record({ reference: `order ${n}`, fields: { amount: HUGE + n } }));
  const now = api.deps.clock.now();
  await api.operations.conclude(accepted(ids[0] as string, HUGE, now));
  await api.operations.conclude(answerLost(ids[1] as string, now));
});

const listed = async (query: string) => {
  const { status, body } = await api.call('GET', `/api/operations${query}`);
  expect(status).toBe(200);
  return body.data.map((operation) => operation.id);
};

describe('A list of operations', () => {
  it('The list contains every operation once, newest first', async () => {
    const pages = await api.pagesOf('/api/operations?limit=2');
    expect(pages.map(({ data }) => data.length)).toEqual([2, 2, 1]);
    expect(pages.flatMap(({ data }) => data.map(({ id }) => id))).toEqual(ids.toReversed());
  });

  it.each([
    ['?state=accepted', () => [ids[0]]],
    ['?state=unknown', () => [ids[1]]],
    ['?open=true', () => ids.toReversed()],
    [`?open=true&addr=${ADDR_A}`, () => ids.toReversed()],
    ['?open=true&state=rejected', () => []],
    ['?kind=mint', () => []],
    [`?addr=${ADDR_A.toLowerCase()}&state=accepted`, () => [ids[0]]],
    [`?addr=${ADDR_B}&state=unknown`, () => [ids[1]]],
    [`?tx_log_no=${HUGE}`, () => [ids[0]]],
    [`?tx_hash=${HASH}`, () => []],
    ['?reference=order%203', () => [ids[3]]],
    ['?contract_id=1&token_id=2', () => []],
    ['?idempotency_key=none', () => []],
    ['?since=2100-01-01T00:00:00Z', () => []],
    ['?until=1971-01-01T00:00:00Z', () => []],
  ])('The list filters by %s', async (query, expected) => {
    expect(await listed(query)).toEqual(expected());
  });

  it('A cursor of another list is refused', async () => {
    const { body } = await api.call('GET', '/api/operations?cursor=YWJj');
    expect(body.code).toBe('invalid_cursor');
  });
});

describe('The timeline of an operation', () => {
  it('The timeline has the events of the changes of state and no others', async () => {
    const { status, body } = await api.call('GET', `/api/operations/${ids[0]}/timeline`);
    expect(status).toBe(200);
    expect(body.events).toEqual([
      expect.objectContaining({ type: 'operation.accepted', deliveries: [] }),
    ]);
    expect(body).toMatchObject({ observations: [], postings: [], movements: [] });
  });

  it('The poll before a send stays in its timeline, however many polls came after it', async () => {
    const addr = `0T${'t'.repeat(40)}`;
    await pollWallet(api, addr, 77n);
    const id = await api.record({ fields: { toAddr: addr, amount: 1n } });
    await api.operations.conclude(answerLost(id, api.clock.now()));
    await pollWallet(api, addr, ...Array.from({ length: 30 }, (_, n) => BigInt(n)));
    const { body } = await api.call('GET', `/api/operations/${id}/timeline`);
    const observations = body.observations as { balance: string }[];
    const balances = observations.map(({ balance }) => balance);
    expect(balances.slice(0, 3)).toEqual(['77', '0', '1']);
    expect(balances).toHaveLength(21);
  });

  it('The timeline of an operation that does not exist is refused', async () => {
    const id = 'op_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b';
    const { body } = await api.call('GET', `/api/operations/${id}/timeline`);
    expect(body.code).toBe('not_found');
  });
});

describe('One operation', () => {
  it('An operation shows numbers beyond 2^53 with all digits, and its transitions', async () => {
    const { body } = await api.call('GET', `/api/operations/${ids[0]}`);
    expect(body).toMatchObject({
      id: ids[0],
      operation_id: ids[0],
      state: 'accepted',
      outcome: 'executed',
      amount: HUGE.toString(),
      tx_log_no: HUGE.toString(),
      reference: 'order 0',
    });
    expect(body.transitions).toContainEqual(
      expect.objectContaining({ from_state: 'sending', to_state: 'accepted', cause: 'answer' }),
    );
  });

  it('An operation shows its sends, pre-image and decisions', async () => {
    const { body } = await api.call('GET', `/api/operations/${ids[0]}`);
    expect(body).toMatchObject({
      sends: [{ n: 1, after: null }],
      decisions: [],
      pre_image: null,
      expires_at: null,
    });
  });

  it.each(['op_1', 'op_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b', 'evt_x', '%00', '..%2f'])(
    'No operation is found under %s',
    async (id) => {
      const { status, body } = await api.call('GET', `/api/operations/${id}`);
      expect({ status, code: body.code }).toEqual({ status: 404, code: 'not_found' });
    },
  );
});
