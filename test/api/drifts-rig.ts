/** Drifts through the API: three owners, wallets changed elsewhere, and what becomes of them. */
import { afterEach, beforeAll, expect } from 'vitest';
import { faultsOf, NO_FAULTS } from '../ledger/fixture.ts';
import type { Answer, Body } from './described.ts';
import { pollWallet } from './polls.ts';
import { useApi } from './rig.ts';

type Owner = 'ann' | 'bob' | 'cleo';

/** Registers the hooks. Use the rig inside tests only. */
export function useDrifts() {
  const api = useApi();
  const keys = {} as Record<Owner, string>;
  let wallets = 0;

  beforeAll(async () => {
    for (const owner of ['ann', 'bob', 'cleo'] as const) {
      const made = await api.keys.create({ name: owner, owner, scopes: ['decide', 'read'] });
      keys[owner] = made.secret;
    }
  });
  afterEach(async () => {
    expect(await faultsOf(api.database.owner)).toEqual(NO_FAULTS);
  });

  const rig = {
    api,
    keys,
    freshAddr: () => `0xDD${String(++wallets).padStart(38, '0')}`,
    poll: (addr: string, ...balances: bigint[]) => pollWallet(api, addr, ...balances),
    /** @param by an owner, or a key */
    post: (path: string, body: object = {}, by: string = 'ann'): Promise<Answer> =>
      api.call('POST', `/api/drifts${path}`, { key: keys[by as Owner] ?? by, body }),
    driftsOf: async (addr: string, query = 'state=unclosed') =>
      (await api.call('GET', `/api/drifts?${query}&addr=${addr}`)).body.data,
    driftOf: async (addr: string) => (await rig.driftsOf(addr))[0] as Body,
    find: async (id: string) => (await api.call('GET', `/api/drifts/${id}`)).body,
    async eventsOf(addr: string) {
      const rows = await api.database.owner.sql<{ type: string; body: string }[]>`
        select type, tallyhook.event_body(events) as body from tallyhook.events
        where subject = ${`wallet:${addr.toLowerCase()}`}
          and type like 'wallet.drift%' order by subject_seq`;
      return rows.map(({ type, body }) => ({ type, data: JSON.parse(body).data }));
    },
    /** A wallet of 1000 that was changed elsewhere by this amount, which two polls confirm. */
    async drifting(amount: bigint): Promise<{ addr: string; id: string }> {
      const addr = rig.freshAddr();
      await rig.poll(addr, 1_000n, 1_000n, 1_000n + amount, 1_000n + amount);
      return { addr, id: (await rig.driftOf(addr)).id };
    },
    propose: (id: string, body: object = {}, by: string = 'ann') =>
      rig.post(`/${id}/propose`, { reason: 'paid in cash', proposal: 'book', ...body }, by),
    approve: (id: string, by: string = 'bob', body: object = {}) =>
      rig.post(`/${id}/approve`, body, by),
    async booked(amount: bigint) {
      const { addr, id } = await rig.drifting(amount);
      await rig.propose(id);
      expect((await rig.approve(id)).status).toBe(200);
      await api.postAll();
      return { addr, id };
    },
  };
  return rig;
}
