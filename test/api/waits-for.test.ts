import { expect, it } from 'vitest';
import { pollWallet } from './polls.ts';
import { useApi } from './rig.ts';
import { accepted, aWrite, nextNumber } from './writes.ts';

const api = useApi();

it('An operation says which drift it waits for, with its history, and can be taken back', async () => {
  const addr = `0xEE${'0'.repeat(38)}`;
  await pollWallet(api, addr, 1_000n, 1_000n);
  const ids: string[] = [];
  for (const amount of [7n, 9n]) {
    const fields = { fromAddr: null, toAddr: addr, operationNo: 7n, amount, feeAmount: null };
    const made = await api.operations.record(aWrite({ kind: 'give', fields }));
    if (!('id' in made)) throw new Error('it was not recorded');
    await api.operations.conclude(accepted(made.id, nextNumber(), api.deps.clock.now() - 60_000));
    ids.push(made.id);
  }
  await api.postAll();
  await pollWallet(api, addr, 1_000n, 1_000n, 1_000n);
  const { data } = (await api.call('GET', `/api/drifts?addr=${addr}`)).body;
  expect(data).toMatchObject([{ amount: '-16' }]);
  const drifts = data.map((drift: { id: string }) => drift.id);
  for (const id of ids) {
    const { body } = await api.call('GET', `/api/operations/${id}`);
    expect(body).toMatchObject({
      state: 'accepted',
      waits_for: { drifts, operations: [] },
    });
    expect(body.transitions).toContainEqual(
      expect.objectContaining({
        cause: expect.stringContaining('could hold the same difference'),
        evidence: { drifts, operations: [] },
      }),
    );
  }
});
