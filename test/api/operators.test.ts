/** The wallets of operators, which two owners map through the API: its states and refusals. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from './described.ts';
import { NAMED_OPERATOR, NAMED_WALLET, useApi } from './rig.ts';

const api = useApi();
const keys = { ann: '', bob: '', reader: '' };
type Owner = keyof typeof keys;
let wallets = 0;

const freshAddr = () => `0xEE${String(++wallets).padStart(38, '0')}`;
const read = (no: number) => api.call('GET', `/api/operators/${no}`);
const post = (no: number | string, act: string, body: object, by: Owner): Promise<Answer> =>
  api.call('POST', `/api/operators/${no}/${act}`, { key: keys[by], body });
const propose = (no: number | string, addr: string, by: Owner = 'ann', more: object = {}) =>
  post(no, 'propose', { addr, reason: 'the contract says so', ...more }, by);
const approve = (no: number, by: Owner = 'bob', body: object = {}) => post(no, 'approve', body, by);
const reject = (no: number, by: Owner = 'bob', body: object = {}) =>
  post(no, 'reject', { reason: 'it is another one', ...body }, by);
const refused = ({ status, body }: Answer) => `${status} ${body.code}: ${body.detail}`;

beforeAll(async () => {
  for (const [owner, scopes] of [
    ['ann', ['decide']],
    ['bob', ['decide']],
    ['reader', ['read']],
  ] as const)
    keys[owner] = (await api.keys.create({ name: owner, owner, scopes: [...scopes] })).secret;
});

describe('A mapping', () => {
  it('A mapping is in force once another owner approves it, and then stays', async () => {
    const addr = freshAddr();
    expect((await propose(1, addr)).body).toMatchObject({
      operator_no: '1',
      addr: null,
      source: null,
      proposal: { n: 1, state: 'proposed', addr, proposed_by: 'ann', approved_by: null },
      effect: { addr, since: null, gives: 0, drifts: [] },
    });
    expect((await approve(1, 'bob', { n: 1 })).body).toMatchObject({
      addr,
      source: 'mapping',
      proposal: { state: 'active', approved_by: 'bob' },
      effect: null,
    });
    expect(refused(await reject(1))).toContain('409 conflict: operator 1: nothing waits');
    expect(refused(await approve(1))).toContain('409 conflict: operator 1: nothing waits');
    expect((await read(1)).body.addr).toBe(addr);
    const polled = await api.database.owner.sql`
      select from tallyhook.targets where name = ${`wallet:${addr.toLowerCase()}`}`;
    expect(polled).toHaveLength(1);
    const decided = await api.database.owner.sql`
      select subject, decision, approved_by from finance_v1.decisions where subject = 'operator:1'`;
    expect(decided).toEqual([{ subject: 'operator:1', decision: addr, approvedBy: 'bob' }]);
  });

  it('After a rejection by another owner, or by its proposer, another wallet may be proposed', async () => {
    const [first, second] = [freshAddr(), freshAddr()];
    await propose(2, first);
    expect((await reject(2)).body.proposal).toMatchObject({
      n: 1,
      state: 'rejected',
      rejected_by: 'bob',
      reject_reason: 'it is another one',
    });
    expect(refused(await approve(2))).toContain('409 conflict: operator 2: nothing waits');
    // The first wallet is free again.
    await propose(3, first);
    await propose(2, second);
    expect((await reject(2, 'ann')).body.proposal).toMatchObject({ n: 2, rejected_by: 'ann' });
    expect((await propose(2, second, 'bob')).body.proposal).toMatchObject({ n: 3 });
    expect(refused(await approve(2, 'ann', { n: 2 }))).toContain(
      'the proposal that waits is number 3',
    );
    expect((await approve(2, 'ann', { n: 3 })).body.addr).toBe(second);
  });

  it('The database refuses a mapping that no proposal says, and a second one that is not rejected', async () => {
    const [addr, other] = [freshAddr(), freshAddr()];
    await propose(50, addr);
    const { sql } = api.deps.db;
    const insert = (n: number, wallet: string) => sql`
      insert into tallyhook.operator_wallets (account, n, addr)
      values ('operator:50', ${n}, ${wallet})`;
    await expect(insert(2, other)).rejects.toThrow(/operator_wallets_once/);
    await expect(
      sql`update tallyhook.operator_wallets set addr = ${other} where account = 'operator:50'`,
    ).rejects.toThrow(/permission denied/);
    await reject(50);
    await expect(insert(2, other)).rejects.toThrow(/operator_wallets_decided/);
    await expect(sql`delete from tallyhook.operator_wallets`).rejects.toThrow(/permission denied/);
  });

  it('A dry run of a proposal stores nothing', async () => {
    const addr = freshAddr();
    const { body } = await propose(4, addr, 'ann', { dry_run: true });
    expect(body).toMatchObject({ addr: null, proposal: null, effect: { addr, gives: 0 } });
    expect((await read(4)).body).toMatchObject({ proposal: null, effect: null });
  });

  it('All operators with a wallet or a proposal are listed by their numbers', async () => {
    await propose(10, freshAddr());
    await propose('123456789012345678901', freshAddr());
    const pages = await api.pagesOf('/api/operators?limit=2');
    const rows = pages.flatMap(({ data }) => data);
    const numbers = rows.map(({ operator_no: no }) => no);
    expect(numbers).toEqual(['1', '2', '3', '10', '50', NAMED_OPERATOR, '123456789012345678901']);
    expect(rows[5]).toMatchObject({ addr: NAMED_WALLET, source: 'setting', proposal: null });
  });

  it('The status counts the operators whose proposed wallet waits, which the list can be limited to', async () => {
    const waiting = async () => {
      const { body } = await api.call('GET', '/api/operators?proposed=true&limit=500');
      const { body: status } = await api.call('GET', '/api/status');
      const numbers = body.data.map(({ operator_no: no }) => no);
      expect((status.open as { operators_proposed: number }).operators_proposed).toBe(
        numbers.length,
      );
      return numbers;
    };
    const before = await waiting();
    await propose(60, freshAddr());
    await propose(61, freshAddr());
    expect(await waiting()).toEqual(expect.arrayContaining([...before, '60', '61']));
    await approve(60);
    await reject(61);
    expect(await waiting()).toEqual(before);
  });

  it('Of proposals and approvals at the same time one is made', async () => {
    const [one, other] = [freshAddr(), freshAddr()];
    const proposed = await Promise.all(
      [one, other, one].flatMap((addr) => [propose(20, addr), propose(21, addr, 'bob')]),
    );
    expect(proposed.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(2);
    const waiting = await Promise.all([read(20), read(21)]);
    const addrs = waiting.map(({ body }) => (body.proposal as { addr: string }).addr);
    expect(new Set(addrs).size).toBe(2);
    const done = await Promise.all([approve(20), reject(20), approve(20), reject(20)]);
    expect(done.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409]);
  });
});

describe('A refused mapping', () => {
  const taken = freshAddr();
  const waits = freshAddr();
  beforeAll(async () => {
    await propose(30, taken);
    expect((await approve(30)).status).toBe(200);
    await propose(31, waits);
  });

  it.each<[string, () => Promise<Answer>, string]>([
    [
      'the settings file names the operator',
      () => propose(NAMED_OPERATOR, freshAddr()),
      `409 conflict: operator ${NAMED_OPERATOR}: the settings file names its wallet`,
    ],
    [
      'the settings file names the wallet for another operator',
      () => propose(40, NAMED_WALLET.toUpperCase().replace('X', 'x')),
      `409 conflict: operator 40: the wallet is that of operator ${NAMED_OPERATOR}`,
    ],
    [
      'the wallet is mapped to another operator',
      () => propose(40, taken),
      '409 conflict: operator 40: the wallet is that of operator 30',
    ],
    [
      'the wallet is proposed for another operator',
      () => propose(40, waits),
      '409 conflict: operator 40: the wallet is that of operator 31',
    ],
    [
      'the operator has a wallet',
      () => propose(30, freshAddr()),
      `409 conflict: operator 30: ${taken} is mapped to it`,
    ],
    [
      'a proposal waits for the operator',
      () => propose(31, freshAddr(), 'bob'),
      `409 conflict: operator 31: ${waits} is mapped to it, or proposed`,
    ],
    ['the wallet is no address', () => propose(40, '0x12'), '400 invalid_request'],
    ['its proposer approves', () => approve(31, 'ann'), '409 same_owner: ann proposed it'],
    ['nothing is proposed', () => approve(40), '409 conflict: operator 40: nothing waits'],
    ['nothing is to be rejected', () => reject(40), '409 conflict: operator 40: nothing waits'],
    ['the key only reads', () => propose(40, freshAddr(), 'reader'), '403 forbidden'],
    ['the key that approves only reads', () => approve(31, 'reader'), '403 forbidden'],
    ['the operator is no number', () => propose('x', freshAddr()), '404 not_found'],
  ])('A mapping is refused when %s', async (_, act, refusal) => {
    expect(refused(await act())).toContain(refusal);
    expect((await read(31)).body.proposal).toMatchObject({ n: 1, state: 'proposed' });
  });
});
