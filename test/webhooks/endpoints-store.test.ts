/** The store of endpoints, in thousands of cases on the fast tier. */
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import * as store from '../../src/webhooks/endpoints/store.ts';
import { openMemory } from './mem-orm.ts';

const { orm, reset } = openMemory('endpoints', 'endpoint_health');
beforeEach(reset);

const NOW = Date.UTC(2026, 0, 1);
const row = (id: string, changed: Partial<store.EndpointRow> = {}): store.EndpointRow => ({
  ...{ id, url: 'https://example.com/hook', description: null, eventTypes: ['*'] },
  ...{ ordering: 'none', signing: ['v1', 'v1a'], encryptedSecrets: 's1.x', encryptedHeaders: null },
  ...{ publicKey: null, ratePerS: null, state: 'enabled', stateReason: null, stateAt: NOW },
  ...{ createdBy: 'ann', createdAt: NOW },
  ...changed,
});
const word = fc.stringMatching(/^[a-z_.]{1,12}$/);
const anyRow = fc
  .record({
    url: fc.webUrl(),
    // pg-mem writes parameters into the statement and stumbles over backslashes.
    description: fc.option(fc.stringMatching(/^[\w '"äß,.;%-]{0,40}$/)),
    eventTypes: fc.array(word, { minLength: 1, maxLength: 5 }),
    ordering: fc.constantFrom('none', 'subject'),
    signing: fc.subarray(['v1', 'v1a'], { minLength: 1 }),
    encryptedSecrets: fc.base64String().map((text) => `s1.${text}`),
    encryptedHeaders: fc.option(fc.base64String().map((text) => `s1.${text}`)),
    publicKey: fc.option(fc.base64String().map((text) => `whpk_${text}`)),
    ratePerS: fc.option(fc.integer({ min: 1, max: 1000 })),
    stateAt: fc.integer({ min: 0, max: NOW }),
    createdAt: fc.integer({ min: 0, max: NOW }),
  })
  .map((changed) => row('ep_1', changed));

describe('the store of endpoints', () => {
  test('gives back every row as it was put in', async () => {
    await fc.assert(
      fc.asyncProperty(anyRow, async (given) => {
        reset();
        await store.insertEndpoint(orm, given);
        expect(await store.findEndpoint(orm, given.id)).toEqual(given);
      }),
      { numRuns: 1_000 },
    );
  });

  test('changes what is named and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyRow,
        anyRow,
        fc.subarray(['url', 'eventTypes', 'encryptedHeaders', 'stateAt', 'ratePerS'] as const),
        async (given, other, names) => {
          reset();
          await store.insertEndpoint(orm, given);
          await store.insertEndpoint(orm, row('ep_2'));
          const patch = Object.fromEntries(names.map((name) => [name, other[name]]));
          if (names.length > 0) await store.updateEndpoint(orm, 'ep_1', patch);
          expect(await store.findEndpoint(orm, 'ep_1')).toEqual({ ...given, ...patch });
          expect(await store.findEndpoint(orm, 'ep_2')).toEqual(row('ep_2'));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('pages through all that live, in order, each once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.nat(99), { maxLength: 20 }),
        fc.integer({ min: 1, max: 7 }),
        fc.nat(),
        async (numbers, limit, gone) => {
          reset();
          const ids = numbers.map((n) => `ep_${String(n).padStart(2, '0')}`);
          for (const id of ids) await store.insertEndpoint(orm, row(id));
          const deleted = ids[gone % Math.max(1, ids.length)];
          if (deleted) await store.deleteEndpoint(orm, deleted, NOW);
          const seen: string[] = [];
          for (let after = ''; ; after = seen.at(-1) ?? '') {
            const page = await store.listEndpoints(orm, after, limit);
            seen.push(...page.map(({ id }) => id));
            if (page.length < limit) break;
          }
          expect(seen).toEqual(ids.filter((id) => id !== deleted).sort());
          expect(await store.countEndpoints(orm)).toBe(seen.length);
        },
      ),
      { numRuns: 200 },
    );
  });

  test('forgets the seals of a deleted endpoint, and deletes it once', async () => {
    await store.insertEndpoint(orm, row('ep_1', { encryptedHeaders: 's1.y', publicKey: 'whpk_1' }));
    expect(await store.deleteEndpoint(orm, 'ep_1', NOW)).toBe(true);
    expect(await store.deleteEndpoint(orm, 'ep_1', NOW)).toBe(false);
    expect(await store.findEndpoint(orm, 'ep_1')).toBeUndefined();
    expect(await store.listPublicKeys(orm, 10)).toEqual([]);
  });

  test('starts an endpoint healthy and forgets its failures when told', async () => {
    await store.insertEndpoint(orm, row('ep_1'));
    const healthy = { consecutiveFailures: 0, failingSince: null, holdUntil: null };
    expect(await store.findHealth(orm, 'ep_1')).toEqual({ ...healthy, lastSuccessAt: null });
    await store.resetHealth(orm, 'ep_1');
    expect(await store.findHealth(orm, 'ep_1')).toMatchObject(healthy);
    expect(await store.findHealth(orm, 'ep_2')).toBeUndefined();
  });

  test('lists the public keys of those that have one', async () => {
    await store.insertEndpoint(orm, row('ep_1', { publicKey: 'whpk_1' }));
    await store.insertEndpoint(orm, row('ep_2'));
    expect(await store.listPublicKeys(orm, 10)).toEqual([
      { endpointId: 'ep_1', publicKey: 'whpk_1' },
    ]);
  });
});
