/** Cached lists are always current. */
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { startCaller, stopAll } from '../client.ts';

const LIST = '/v1/chain/erc721/1/tokens?perPage=100';

afterAll(stopAll);

it('A list shows each change at once, also when the same list was read before', async () => {
  const caller = await startCaller();
  const client = await caller.clientToken();
  const { control } = caller.sandbox;
  const wallets = [1, 2].map((no) => caller.addressOf(no));
  const id = fc.bigInt({ min: 1n, max: 4n });
  const step = fc.oneof(
    fc.record({ id, owner: fc.constantFrom(...wallets) }),
    fc.record({ id, locked: fc.boolean() }),
    fc.record({ id, removed: fc.constant(true) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
      for (const { id: tokenId, ...change } of steps) {
        if ('removed' in change) control.removeToken(1n, tokenId);
        else control.setToken(1n, tokenId, change);
        for (const query of ['', `ownerAddr=${wallets[0]}`, 'isLocked=true']) {
          const reply = await caller.send('GET', `${LIST}&${query}`, { as: client });
          const expected = control
            .state()
            .tokens.filter(
              (token) =>
                token.contract_id === 1n &&
                (!query.startsWith('owner') || token.owner === wallets[0]) &&
                (!query.startsWith('isLocked') || token.locked),
            );
          expect(reply.at('data.total')).toBe(expected.length);
        }
      }
    }),
    { numRuns: 15 },
  );
});
