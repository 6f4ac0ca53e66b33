/** Watches add and remove targets, except those of open operations. */
import { beforeEach, describe, expect, it } from 'vitest';
import { useApi } from './rig.ts';
import { ADDR_A, ADDR_B, aWrite } from './writes.ts';

const api = useApi();

beforeEach(async () => {
  await api.database.owner.sql`delete from tallyhook.watches`;
  await api.database.owner.sql`delete from tallyhook.targets`;
});

async function targets(): Promise<{ name: string }[]> {
  const rows = await api.database.db.sql<{ name: string }[]>`
    select name from tallyhook.targets order by name`;
  return [...rows];
}

const post = (body: unknown, key?: string) =>
  api.call('POST', '/api/watches', key === undefined ? { body } : { body, key });

describe('A watch', () => {
  it('A watch of a wallet adds a target under its lower-case address', async () => {
    const { status, body } = await post(
      { kind: 'wallet', addr: ADDR_A },
      await api.keyFor('manage'),
    );
    expect(status).toBe(201);
    expect(body).toMatchObject({
      kind: 'wallet',
      addr: ADDR_A,
      contract_id: null,
      created_by: 'owner of manage',
    });
    expect(body.observation_age_max_ms).toBeGreaterThanOrEqual(60_000);
    expect(await targets()).toEqual([{ name: `wallet:${ADDR_A.toLowerCase()}` }]);
  });

  it('The list can be limited to the watch of one wallet, in any spelling', async () => {
    const { body } = await post([
      { kind: 'wallet', addr: ADDR_A },
      { kind: 'contract', contract_id: '7' },
    ]);
    const found = await api.call(
      'GET',
      `/api/watches?addr=${ADDR_A.toUpperCase().replace('X', 'x')}`,
    );
    expect(found.body.data).toEqual([body.data[0]]);
  });

  it('A repeated watch keeps its id', async () => {
    const first = await post({ kind: 'token', contract_id: '1', token_id: '90071992547409930001' });
    const again = await post({
      kind: 'token',
      contract_id: '1',
      token_id: '90071992547409930001',
    });
    expect(again.body).toMatchObject({ id: first.body.id });
    expect(await targets()).toEqual([{ name: 'token:1:90071992547409930001' }]);
  });

  it('An array of watches is answered once per target, in the order of the request', async () => {
    const { body } = await post([
      { kind: 'wallet', addr: ADDR_B },
      { kind: 'contract', contract_id: '5' },
      { kind: 'wallet', addr: ADDR_B.toLowerCase() },
      { kind: 'wallet', addr: ADDR_A },
    ]);
    expect(body.data.map((w) => w.addr)).toEqual([ADDR_B, null, ADDR_A]);
    const { body: list } = await api.call('GET', '/api/watches?limit=2');
    expect(list.data).toHaveLength(2);
    const { body: rest } = await api.call('GET', `/api/watches?cursor=${list.next_cursor}`);
    expect({ rows: rest.data.length, next: rest.next_cursor }).toEqual({ rows: 1, next: null });
  });

  it('Deleting a watch removes its target', async () => {
    const { body } = await post({ kind: 'wallet', addr: ADDR_A });
    const { status } = await api.call('DELETE', `/api/watches/${body.id}`);
    expect(status).toBe(204);
    expect(await targets()).toEqual([]);
    expect((await api.call('DELETE', `/api/watches/${body.id}`)).status).toBe(404);
  });

  it('Deleting a watch keeps the target of an operation', async () => {
    await api.operations.record(aWrite({ fields: { fromAddr: ADDR_B, toAddr: ADDR_B } }));
    await api.operations.record(
      aWrite({ kind: 'burn', fields: { contractId: 8n, tokenId: 9n, amount: null } }),
    );
    for (const input of [
      { kind: 'wallet', addr: ADDR_B.toLowerCase() },
      { kind: 'token', contract_id: '8', token_id: '9' },
      { kind: 'token', contract_id: '8', token_id: '10' },
      { kind: 'contract', contract_id: '8' },
    ]) {
      const { body } = await post(input);
      await api.call('DELETE', `/api/watches/${body.id}`);
    }
    expect((await targets()).map(({ name }) => name)).toEqual([
      'token:8:9',
      `wallet:${ADDR_B.toLowerCase()}`,
    ]);
  });

  it.each([
    [{ kind: 'wallet' }, 'addr'],
    [{ kind: 'wallet', addr: '0x' }, 'addr'],
    [{ kind: 'token', contract_id: '1' }, 'token_id'],
    [{ kind: 'token', contract_id: 1, token_id: '2' }, 'contract_id'],
    [{ kind: 'planet' }, 'kind'],
    [{ kind: 'wallet', addr: ADDR_A, colour: 'red' }, 'colour'],
    [[], ''],
    [[{ kind: 'wallet', addr: ADDR_A }, { kind: 'wallet' }], '1.addr'],
  ])('The watch %j is refused with the name of the field %j', async (body, path) => {
    const answer = await post(body);
    expect({ status: answer.status, code: answer.body.code }).toEqual({
      status: 400,
      code: 'invalid_request',
    });
    expect(answer.body.errors.map((error) => error.path)).toContain(path);
    expect(await targets()).toEqual([]);
  });
});
