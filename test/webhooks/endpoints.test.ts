/** Managing endpoints on a real database: subscriptions, secrets, rotation, enabling, retries. */
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { must } from '../../src/kernel/errors.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { makeOutbox } from '../../src/outbox/outbox.ts';
import { makeEncryption } from '../../src/webhooks/encryption.ts';
import {
  type EndpointInput,
  reencryptEndpoints,
  webhookDefaults,
} from '../../src/webhooks/webhooks.ts';
import { startReceiver } from '../harness/receiver.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import { useRig, walletEvent, walletEvents } from './rig.ts';

const HOUR = 3_600_000;
const rig = useRig();

const paths = () => rig.receiver.requests.map((r) => r.path);

it('The secret is returned once, afterwards only the public key', async () => {
  const created = await rig.subscribe('/hook', { headers: { 'X-Key': 'value-of-a-header' } });
  expect(created.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(created.newPublicKey).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/);
  const { id } = created.endpoint;
  const shown = await rig.webhooks.getEndpoint(id);
  expect(shown).toMatchObject({ publicKey: created.newPublicKey, headerNames: ['X-Key'] });
  expect(JSON.stringify(shown)).not.toMatch(/whsec_|whsk_|value-of-a-header/);
  const publicKeys = [{ endpointId: id, publicKey: created.newPublicKey }];
  expect(await rig.webhooks.publicKeys()).toEqual(publicKeys);
});

it('No secret is readable in the database or the log', async () => {
  const created = await rig.subscribe('/hook', { headers: { 'X-Key': 'value-of-a-header' } });
  const secret = must(created.secret, 'secret');
  await rig.emit(walletEvent());
  rig.receiver.behave({ do: 'answer', status: 500, body: secret });
  await rig.deliver();
  const { sql } = rig.database.owner;
  const tables = await sql<{ name: string }[]>`
    select tablename as name from pg_tables where schemaname = 'tallyhook'`;
  for (const { name } of tables) {
    const rows = await sql`select t::text as row from ${sql(`tallyhook.${name}`)} t`;
    const text = rows.map(({ row }) => row).join('\n');
    expect(text).not.toContain(secret.slice('whsec_'.length));
    expect(text).not.toContain('value-of-a-header');
  }
  expect(rig.logged.join('')).not.toContain(secret.slice('whsec_'.length));
});

it.each<[string, Partial<EndpointInput>, string]>([
  ['an unknown type', { eventTypes: ['wallet.exploded'] }, 'invalid_request'],
  ['an unknown group', { eventTypes: ['purse.*'] }, 'invalid_request'],
  ['half a pattern', { eventTypes: ['wallet.bal*'] }, 'invalid_request'],
  ['no types', { eventTypes: [] }, 'invalid_request'],
  ['no scheme', { signing: [] }, 'invalid_request'],
  ['a scheme twice', { signing: ['v1', 'v1'] }, 'invalid_request'],
  ['a rate of zero', { ratePerS: 0 }, 'invalid_request'],
  ['a rate that is not a number', { ratePerS: Number.NaN }, 'invalid_request'],
  ['a header of the signature', { headers: { 'Webhook-Id': 'x' } }, 'invalid_request'],
  ['a header of HTTP', { headers: { 'content-length': '0' } }, 'invalid_request'],
  ['a header with a line break', { headers: { 'X-A': 'a\r\nX-B: b' } }, 'invalid_request'],
  ['a header twice', { headers: { 'X-A': '1', 'x-a': '2' } }, 'invalid_request'],
  ['a private address', { url: 'http://10.0.0.1/' }, 'url_refused'],
  ['another protocol', { url: 'ftp://example.com/' }, 'url_refused'],
])('Creating an endpoint with %s is refused', async (_, input, code) => {
  await expect(rig.subscribe('/hook', input)).rejects.toMatchObject({ code });
});

it.each([
  [['*'], 1],
  [['wallet.*'], 1],
  [['wallet.observed'], 1],
  [['token.*', 'wallet.observed'], 1],
  [['wallet.balance_changed'], 0],
  [['operation.*', 'service.*'], 0],
])('An endpoint with types %j receives wallet.observed %i times', async (eventTypes, times) => {
  await rig.subscribe('/hook', { eventTypes });
  await rig.emit(walletEvent());
  await rig.deliver();
  expect(rig.receiver.requests.length).toBe(times);
});

it('An owner has at most as many endpoints as the setting says, whatever others have', async () => {
  const max = 3;
  const webhooks = rig.another({ endpointsPerOwner: max });
  const create = (owner: string) =>
    webhooks.createEndpoint({ url: rig.receiver.url }, owner).then(({ endpoint }) => endpoint);
  const many = await Promise.all(Array.from({ length: max }, () => create('busy')));
  await expect(create('busy')).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining(`${max} endpoints of busy`),
  });
  await create('another');
  await webhooks.deleteEndpoint(many[0]?.id ?? '');
  await create('busy');
});

it('An event has one delivery per subscribed endpoint', async () => {
  const subscribed = [(await rig.subscribe()).endpoint.id, (await rig.subscribe()).endpoint.id];
  await rig.subscribe('/hook', { eventTypes: ['token.*'] });
  const [eventId = ''] = await rig.emit(walletEvent(), walletEvent());
  const deliveries = await rig.webhooks.listDeliveries({ eventId }, { before: '', limit: 10 });
  expect(deliveries.map((d) => d.endpointId).sort()).toEqual(subscribed.sort());
  expect(deliveries[0]?.id).toMatch(/^dlv_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-/);
});

it('A rolled back event leaves no delivery', async () => {
  const { endpoint } = await rig.subscribe();
  await expect(
    rig.database.db.begin(async (tx) => {
      await rig.emitIn(tx, walletEvent());
      throw new Error('the producer fails');
    }),
  ).rejects.toThrow('the producer fails');
  expect(await rig.deliveriesOf(endpoint.id)).toEqual([]);
});

it('hasRecentDeliveries stays true after a fan-out that had a subscriber', async () => {
  const { clock, database } = rig;
  const outbox = makeOutbox({ clock, ids: makeIds(clock, seededRandom(9)) });
  const emit = () => database.db.begin((tx) => outbox.emit(tx, [walletEvent()]));
  await emit();
  expect(outbox.hasRecentDeliveries()).toBe(false);
  await rig.subscribe();
  await emit();
  expect([outbox.hasRecentDeliveries(), outbox.hasRecentDeliveries()]).toEqual([true, true]);
});

it('A change applies to the next attempt and to later events', async () => {
  const { endpoint } = await rig.subscribe();
  rig.receiver.answer(500);
  await rig.emit(walletEvent());
  await rig.deliver();
  await rig.webhooks.updateEndpoint(endpoint.id, {
    url: `${rig.receiver.url}/moved`,
    headers: { 'X-New': 'yes' },
    eventTypes: ['token.*'],
  });
  rig.receiver.answer(200);
  await rig.emit(walletEvent());
  rig.clock.advance(6_000);
  await rig.deliver();
  expect(paths()).toEqual(['/hook', '/moved']);
  expect(rig.receiver.requests[1]?.headers['x-new']).toBe('yes');
});

it('The headers of an endpoint are not sent to another origin', async () => {
  const secret = { 'X-Key': 'value-of-a-header' };
  const { endpoint } = await rig.subscribe('/hook', { headers: secret });
  const change = async (input: Partial<EndpointInput>) =>
    (await rig.webhooks.updateEndpoint(endpoint.id, input)).endpoint.headerNames;
  expect(await change({ url: `${rig.receiver.url}/moved` })).toEqual(['X-Key']);
  const other = await startReceiver();
  expect(await change({ url: `${other.url}/hook` })).toEqual([]);
  await rig.emit(walletEvent());
  await rig.deliver();
  expect(other.requests.map(({ headers }) => headers['x-key'])).toEqual([undefined]);
  expect(await change({ url: `${rig.receiver.url}/hook`, headers: secret })).toEqual(['X-Key']);
  await other.close();
});

it('Events name the origin of an endpoint, without its path and query', async () => {
  const { endpoint } = await rig.subscribe('/token-in-path?token=in-query');
  await rig.webhooks.sendTest(endpoint.id);
  expect((await rig.events('endpoint.test')).at(-1)).toMatchObject({ url: rig.receiver.url });
});

it('Adding a scheme makes its key, and removing a scheme drops its keys', async () => {
  const { endpoint } = await rig.subscribe('/hook', { signing: ['v1'] });
  const added = await rig.webhooks.updateEndpoint(endpoint.id, { signing: ['v1', 'v1a'] });
  expect([added.secret, added.newPublicKey]).toEqual([null, expect.stringMatching(/^whpk_/)]);
  await rig.emit(walletEvent());
  await rig.deliver();
  const signature = () => rig.receiver.requests.at(-1)?.headers['webhook-signature'];
  expect(signature()).toMatch(/^v1\S+ v1a|^v1a\S+ v1/);
  const removed = await rig.webhooks.updateEndpoint(endpoint.id, { signing: ['v1a'] });
  expect(removed.endpoint.keys.map((key) => key.scheme)).toEqual(['v1a']);
  await rig.emit(walletEvent());
  await rig.deliver();
  expect(signature()).toMatch(/^v1a,\S+$/);
});

it.each<[string, (id: string) => Promise<unknown>]>([
  ['getEndpoint', (id) => rig.webhooks.getEndpoint(id)],
  ['updateEndpoint', (id) => rig.webhooks.updateEndpoint(id, {})],
  ['deleteEndpoint', (id) => rig.webhooks.deleteEndpoint(id)],
  ['enable', (id) => rig.webhooks.enable(id)],
  ['disable', (id) => rig.webhooks.disable(id)],
  ['rotateSecret', (id) => rig.webhooks.rotateSecret(id)],
  ['sendTest', (id) => rig.webhooks.sendTest(id)],
])('%s of an unknown endpoint fails with not_found', async (_, call) => {
  await expect(call('ep_none')).rejects.toMatchObject({ code: 'not_found' });
});

it('A rotated endpoint signs with both keys until the overlap ends', async () => {
  const created = await rig.subscribe('/hook', { signing: ['v1'] });
  const rotated = await rig.webhooks.rotateSecret(created.endpoint.id, HOUR);
  expect(rotated.secret).not.toBe(created.secret);
  await rig.emit(walletEvent());
  await rig.deliver();
  rig.clock.advance(HOUR);
  await rig.emit(walletEvent());
  await rig.deliver();
  const isSignedBy = (secret: string | null, n: number) => {
    const { headers, body } = must(rig.receiver.requests[n], 'request');
    const at = new Date(Number(headers['webhook-timestamp']) * 1000);
    const signature = new Webhook(secret ?? '').sign(headers['webhook-id'] ?? '', at, body);
    return headers['webhook-signature']?.split(' ').includes(signature);
  };
  expect([isSignedBy(created.secret, 0), isSignedBy(rotated.secret, 0)]).toEqual([true, true]);
  expect([isSignedBy(created.secret, 1), isSignedBy(rotated.secret, 1)]).toEqual([false, true]);
});

it('Days of failures disable an endpoint; a success after a pause is announced', async () => {
  const { endpoint } = await rig.subscribe();
  await rig.subscribe('/operational', { eventTypes: ['endpoint.*'] });
  const deliverFor = async (hours: number) => {
    for (let i = 0; i < hours; i++) {
      await rig.deliver();
      rig.clock.advance(HOUR);
    }
  };
  rig.receiver.answer(500, {}, '/hook');
  await rig.emit(...walletEvents(30));
  await deliverFor(12);
  const { health } = await rig.webhooks.getEndpoint(endpoint.id);
  expect(health.consecutiveFailures).toBeGreaterThanOrEqual(webhookDefaults.health.openAfter);
  rig.receiver.answer(200, {}, '/hook');
  await rig.deliver();
  expect((await rig.events('endpoint.recovered')).at(-1)).toMatchObject({
    endpoint_id: endpoint.id,
  });
  rig.receiver.answer(500, {}, '/hook');
  await rig.emit(...walletEvents(100));
  await deliverFor(6 * 24);
  expect(await rig.webhooks.getEndpoint(endpoint.id)).toMatchObject({
    state: 'disabled',
    stateReason: 'failing',
  });
  expect((await rig.events('endpoint.disabled')).at(-1)).toMatchObject({
    endpoint_id: endpoint.id,
    reason: 'failing',
  });
});

it('A test goes to its endpoint only, with any subscriptions', async () => {
  const { endpoint } = await rig.subscribe('/hook', { eventTypes: ['token.*'] });
  await rig.subscribe('/other');
  const { eventId } = await rig.webhooks.sendTest(endpoint.id);
  await rig.deliver();
  expect(rig.receiver.requests.map((r) => [r.path, r.headers['webhook-id']])).toEqual([
    ['/hook', eventId],
  ]);
  await rig.webhooks.disable(endpoint.id);
  await expect(rig.webhooks.sendTest(endpoint.id)).rejects.toMatchObject({ code: 'conflict' });
});

it('A requested retry sends a delivery again with the same id as its next attempt', async () => {
  const { endpoint } = await rig.subscribe();
  const [eventId] = await rig.emit(walletEvent());
  await rig.deliver();
  const id = (await rig.deliveriesOf(endpoint.id))[0]?.id ?? '';
  expect((await rig.webhooks.retryDelivery(id)).state).toBe('pending');
  await rig.deliver();
  expect(rig.receiver.requests.map((r) => r.headers['webhook-id'])).toEqual([eventId, eventId]);
  expect((await rig.webhooks.listAttempts(id)).map((a) => a.n)).toEqual([1, 2]);
  await rig.webhooks.disable(endpoint.id);
  await expect(rig.webhooks.retryDelivery(id)).rejects.toMatchObject({ code: 'conflict' });
  const unknown = rig.webhooks.retryDelivery('dlv_none');
  await expect(unknown).rejects.toMatchObject({ code: 'not_found' });
});

it('Deliveries are listed in pages, newest first, filtered by state', async () => {
  const { endpoint } = await rig.subscribe();
  await rig.emit(...walletEvents(25));
  const filter = { endpointId: endpoint.id, state: 'pending' as const };
  const ids: string[] = [];
  for (let size = 10; size === 10; ) {
    const before = ids.at(-1) ?? '';
    const page = await rig.webhooks.listDeliveries(filter, { before, limit: 10 });
    ids.push(...page.map(({ id }) => id));
    size = page.length;
  }
  expect(ids.length).toBe(25);
  expect(ids).toEqual([...ids].sort().reverse());
});

it('Encrypting all secrets again continues after a kill, and every page is one commit', async () => {
  const random = seededRandom(9);
  const [old, key] = [new Uint8Array(32).fill(7), new Uint8Array(32).fill(8)];
  const keys = { current: makeEncryption(key, random), both: makeEncryption(key, random, old) };
  for (let n = 0; n < 103; n++) await rig.subscribe(`/${n}`, { headers: { 'x-n': `${n}` } });
  const page = (after: string, dryRun = false) =>
    reencryptEndpoints(rig.database.db, keys, after, dryRun);
  expect(await page('', true)).toMatchObject({ changed: { length: 100 } });
  // The process is killed after this page.
  expect(await page('')).toMatchObject({ changed: { length: 100 }, unreadable: [] });
  const again = await page('');
  expect(again).toMatchObject({ changed: [], unchanged: { length: 100 }, unreadable: [] });
  const rest = await page(again.next ?? '');
  expect(rest).toMatchObject({ changed: { length: 3 }, unreadable: [], next: undefined });
  const former = { current: makeEncryption(old, random), both: makeEncryption(old, random) };
  const lost = await reencryptEndpoints(rig.database.db, former, '', false);
  expect(lost).toMatchObject({ changed: [], unchanged: [], unreadable: { length: 100 } });
  // Back to the key of the other tests.
  const back = { current: makeEncryption(old, random), both: makeEncryption(old, random, key) };
  for (let at: string | undefined = ''; at !== undefined; )
    at = (await reencryptEndpoints(rig.database.db, back, at, false)).next;
  expect((await rig.webhooks.listEndpoints({ after: '', limit: 1 }))[0]?.headerNames).toEqual([
    'x-n',
  ]);
  await rig.database.owner
    .sql`update tallyhook.endpoints set deleted_at = now() where url ~ '/1..$'`;
});
