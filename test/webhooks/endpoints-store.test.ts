/**
 * The store of endpoints, on pg-mem. It parses every statement anew, about 4 ms each, so the number
 * of runs is what these tests cost.
 */
import fc from 'fast-check';
import { beforeEach, expect, it } from 'vitest';
import * as store from '../../src/webhooks/endpoints/store.ts';
import { openMemory } from './pg-mem-orm.ts';

const { orm, reset } = openMemory('endpoints', 'endpoint_health');
beforeEach(reset);

const NOW = Date.UTC(2026, 0, 1);
const row = (id: string, changed: Partial<store.EndpointRow> = {}): store.EndpointRow => ({
  id,
  url: 'https://example.com/hook',
  description: null,
  eventTypes: ['*'],
  ordering: 'none',
  signing: ['v1', 'v1a'],
  encryptedSecrets: 's1.x',
  encryptedHeaders: null,
  publicKey: null,
  ratePerS: null,
  state: 'enabled',
  stateReason: null,
  stateAt: NOW,
  subscribedAt: NOW,
  skipBefore: null,
  createdBy: 'ann',
  createdAt: NOW,
  ...changed,
});
const eventType = fc.stringMatching(/^[a-z_.]{1,12}$/);
const anyRow = fc
  .record({
    url: fc.webUrl(),
    // pg-mem writes parameters into the statement and fails on backslashes.
    description: fc.option(fc.stringMatching(/^[\w '"äß,.;%-]{0,40}$/)),
    eventTypes: fc.array(eventType, { minLength: 1, maxLength: 5 }),
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

it('An update changes the named columns of one row; the rest reads back as inserted', async () => {
  const names = fc.subarray([
    'url',
    'eventTypes',
    'encryptedHeaders',
    'stateAt',
    'ratePerS',
  ] as const);
  await fc.assert(
    fc.asyncProperty(anyRow, anyRow, names, async (inserted, other, changed) => {
      reset();
      await store.insertEndpoint(orm, inserted);
      await store.insertEndpoint(orm, row('ep_2'));
      expect(await store.findEndpoint(orm, 'ep_1')).toEqual(inserted);
      const patch = Object.fromEntries(changed.map((name) => [name, other[name]]));
      if (changed.length > 0) await store.updateEndpoint(orm, 'ep_1', patch);
      expect(await store.findEndpoint(orm, 'ep_1')).toEqual({ ...inserted, ...patch });
      expect(await store.findEndpoint(orm, 'ep_2')).toEqual(row('ep_2'));
    }),
    { numRuns: 50 },
  );
});

it('Pages of any size list every endpoint that is not deleted once, in id order', async () => {
  const ids = ['ep_7', 'ep_2', 'ep_9', 'ep_4', 'ep_1'];
  for (const id of ids) await store.insertEndpoint(orm, row(id));
  await store.deleteEndpoint(orm, 'ep_4', NOW);
  for (const limit of [1, 2, 4, 5]) {
    const listed: string[] = [];
    for (let after = ''; ; after = listed.at(-1) ?? '') {
      const page = await store.listEndpoints(orm, { after, limit });
      listed.push(...page.map(({ id }) => id));
      if (page.length < limit) break;
    }
    expect(listed).toEqual(['ep_1', 'ep_2', 'ep_7', 'ep_9']);
  }
  expect(await store.countEndpoints(orm)).toBe(4);
});

it('Deleting an endpoint erases its secrets, once', async () => {
  await store.insertEndpoint(orm, row('ep_1', { encryptedHeaders: 's1.y', publicKey: 'whpk_1' }));
  expect(await store.deleteEndpoint(orm, 'ep_1', NOW)).toBe(true);
  expect(await store.deleteEndpoint(orm, 'ep_1', NOW)).toBe(false);
  expect(await store.findEndpoint(orm, 'ep_1')).toBeUndefined();
  expect(await store.listPublicKeys(orm, 10)).toEqual([]);
});

it('Disabling changes an endpoint that is enabled, and no other', async () => {
  for (const id of ['ep_1', 'ep_2']) await store.insertEndpoint(orm, row(id));
  expect(await store.disableEndpoint(orm, 'ep_1', 'gone', NOW)).toBe(true);
  expect(await store.disableEndpoint(orm, 'ep_1', 'failing', NOW)).toBe(false);
  const disabled = { state: 'disabled', stateReason: 'gone' };
  expect(await store.findEndpoint(orm, 'ep_1')).toMatchObject(disabled);
  expect(await store.findEndpoint(orm, 'ep_2')).toEqual(row('ep_2'));
});

it('A new endpoint is healthy, and resetting its health keeps it so', async () => {
  await store.insertEndpoint(orm, row('ep_1'));
  const healthy = { consecutiveFailures: 0, failingSince: null, pausedUntil: null };
  expect(await store.findHealth(orm, 'ep_1')).toEqual({ ...healthy, lastSuccessAt: null });
  await store.resetHealth(orm, 'ep_1');
  expect(await store.findHealth(orm, 'ep_1')).toMatchObject(healthy);
  expect(await store.findHealth(orm, 'ep_2')).toBeUndefined();
});

it('The public keys list only endpoints that have one', async () => {
  await store.insertEndpoint(orm, row('ep_1', { publicKey: 'whpk_1' }));
  await store.insertEndpoint(orm, row('ep_2'));
  const keys = [{ endpointId: 'ep_1', publicKey: 'whpk_1' }];
  expect(await store.listPublicKeys(orm, 10)).toEqual(keys);
});
