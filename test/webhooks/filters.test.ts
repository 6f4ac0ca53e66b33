/** Filters of endpoints: what they match, what may be stored, and which deliveries are made. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { asJson } from '../../src/db/connect.ts';
import { monotonicMs } from '../../src/kernel/clock.ts';
import { type Json, jsonText, parseJson } from '../../src/kernel/json.ts';
import type { EventDraft } from '../../src/outbox/events.ts';
import { exampleOfEvent } from '../../src/resources/delivery/event.ts';
import { EVENT_TYPES } from '../../src/resources/delivery/events.ts';
import { checkFilter } from '../../src/webhooks/endpoints/filter.ts';
import { matchesNaively } from './naive-filter.ts';
import { useRig, walletEvent, walletEvents } from './rig.ts';

const rig = useRig();

type Filter = { [name: string]: Json };

async function matches(body: Json, filter: Filter): Promise<boolean | null> {
  const rows = await rig.database.db.sql<{ matches: boolean | null }[]>`
    select tallyhook.matches_filter(${asJson(body)}::jsonb, ${asJson(filter)}::jsonb) as matches`;
  return rows[0]?.matches ?? null;
}

const ADDR = '0x00112233445566778899AABBCCDDEEFF00112233';
const BODY = parseJson(`{"type": "wallet.balance_changed", "timestamp": "2026-01-31T09:00:00.000Z",
  "data": {"addr": "${ADDR}", "amount": "90071992547409930001", "loss": "-3", "rate": "2.50",
    "big": 90071992547409930001, "subject_seq": 7, "reference": "order 12", "cause": null,
    "locked": true, "none": [], "ids": ["a", "b"], "legs": [{"n": 1}, {"n": "9"}, {}],
    "previous": {"balance": "10"}, "": 1}}`);

const CASES: [Filter, boolean][] = [
  [{}, true],
  // A plain value is $eq, and all members must hold.
  [{ type: 'wallet.balance_changed' }, true],
  [{ type: 'wallet.observed' }, false],
  [{ type: { $eq: 'wallet.balance_changed' }, 'data.locked': true }, true],
  [{ type: 'wallet.balance_changed', 'data.locked': false }, false],
  [{ 'data.previous.balance': 10 }, true],
  // Amounts are numbers of any size, in whichever form.
  [{ 'data.amount': '90071992547409930001' }, true],
  [{ 'data.amount': '90071992547409930001.00' }, true],
  [{ 'data.amount': '90071992547409930002' }, false],
  [{ 'data.amount': { $gt: '90071992547409930000' } }, true],
  [{ 'data.amount': { $gt: '90071992547409930001' } }, false],
  [{ 'data.big': { $gte: '90071992547409930001', $lt: '90071992547409930002' } }, true],
  [{ 'data.amount': { $gt: 9 } }, true],
  [{ 'data.loss': { $lt: 0, $gt: '-3.5' } }, true],
  [{ 'data.loss': { $lte: '-3' } }, true],
  [{ 'data.rate': 2.5 }, true],
  [{ 'data.rate': { $in: ['1', 2.5] } }, true],
  [{ 'data.subject_seq': '7.0' }, true],
  [{ 'data.subject_seq': '007' }, true],
  [{ 'data.subject_seq': { $lt: 'seven' } }, false],
  // Texts compare by code points, and neither with numbers nor with anything else.
  [{ timestamp: { $gte: '2026-01-01', $lt: '2026-02-01' } }, true],
  [{ 'data.reference': { $gt: 'order 11' } }, true],
  [{ 'data.reference': 'Order 12' }, false],
  [{ 'data.reference': { $gt: 1 } }, false],
  [{ 'data.locked': 'true' }, false],
  // Addresses and hashes compare without case.
  [{ 'data.addr': ADDR.toLowerCase() }, true],
  [{ 'data.addr': { $ne: ADDR.toUpperCase() } }, false],
  [{ 'data.addr': { $in: ['0x01', ADDR.toLowerCase()] } }, true],
  [{ 'data.addr': ADDR.slice(0, -1).toLowerCase() }, false],
  // A null is a value of its own.
  [{ 'data.cause': null }, true],
  [{ 'data.cause': { $exists: true } }, true],
  [{ 'data.cause': { $ne: null } }, false],
  [{ 'data.reference': null }, false],
  // Of a missing path only $exists: false, $ne, $nin and $not hold.
  [{ 'data.missing': { $exists: false } }, true],
  [{ 'data.missing': { $exists: true } }, false],
  [{ 'data.missing': { $ne: 1 } }, true],
  [{ 'data.missing': { $nin: [1, null] } }, true],
  [{ 'data.missing': { $not: { $gt: 1 } } }, true],
  [{ 'data.missing': null }, false],
  [{ 'data.missing': { $in: [null, 1] } }, false],
  [{ 'data.missing': { $lte: 1 } }, false],
  [{ 'data.addr.deeper': { $exists: true } }, false],
  [{ 'data.missing.deeper': { $exists: false } }, true],
  // A list counts as each of its items.
  [{ 'data.ids': 'b' }, true],
  [{ 'data.ids': { $nin: ['c'] } }, true],
  [{ 'data.ids': { $ne: 'b' } }, false],
  [{ 'data.legs.n': { $gt: 8 } }, true],
  [{ 'data.legs.n': { $gt: 9 } }, false],
  [{ 'data.none': { $exists: true } }, true],
  [{ 'data.none.x': { $exists: true } }, false],
  [{ 'data.legs': { $gt: 0 } }, false],
  // Joined.
  [{ $or: [{ type: 'x' }, { 'data.locked': true }] }, true],
  [{ $or: [{ type: 'x' }, { 'data.locked': false }] }, false],
  [{ $and: [{ 'data.locked': true }, { 'data.ids': 'a' }] }, true],
  [{ $and: [{ 'data.locked': true }, { 'data.ids': 'c' }] }, false],
  [{ $not: { $or: [{ type: 'x' }, { 'data.locked': true }] } }, false],
  [{ 'data.amount': { $not: { $gt: '1', $lt: '5' } } }, true],
  // What could not be stored matches nothing.
  [{ 'data.amount': { $regex: '.*' } }, false],
];

describe('A filter', () => {
  it.each(CASES)('%j matches the body of an event: %s', async (filter, expected) => {
    expect(await matches(BODY, filter)).toBe(expected);
    expect(matchesNaively(BODY, filter)).toBe(expected);
  });

  it('An amount of a thousand digits is compared as a number, and a longer text as a text', async () => {
    const digits = '9'.repeat(1_000);
    const amount = (text: string) => ({ data: { amount: text } });
    const above = { 'data.amount': { $gt: `8${digits.slice(1)}` } };
    expect(await matches(amount(digits), above)).toBe(true);
    expect(await matches(amount(`${digits}9`), above)).toBe(false);
    expect(await matches(amount('7'.repeat(200_000)), above)).toBe(false);
  });

  it('Of a list the first hundred count, so that a long one costs no more', async () => {
    const list = Array.from({ length: 50_000 }, (_, n) => ({ n: n < 100 ? n : -1 }));
    const body = { ids: list.map(({ n }) => String(n)), legs: list, empty: list.map(() => ({})) };
    const found: [Filter, boolean][] = [
      [{ ids: '99' }, true],
      [{ ids: '-1' }, false],
      [{ 'legs.n': { $in: [99, 'x'] } }, true],
      [{ 'legs.n': { $lt: 0 } }, false],
      [{ 'empty.n': { $exists: true } }, false],
    ];
    for (const [filter, expected] of found) {
      expect(await matches(body, filter)).toBe(expected);
      expect(matchesNaively(body, filter)).toBe(expected);
    }
    const values = Array.from({ length: 100 }, (_, n) => String(n + 1_000));
    const costly: Filter = { $or: [{ ids: { $in: values } }, { 'legs.n': { $in: values } }] };
    const startedMs = monotonicMs();
    expect(await matches(body, costly)).toBe(false);
    // 20,000 comparisons, and not 10,000,000.
    expect(monotonicMs() - startedMs).toBeLessThan(10_000);
  });

  it('Any filter matches any body as an evaluator without SQL says', async () => {
    const name = fc.constantFrom('a', 'b', 'c');
    const plain = fc.oneof(
      fc.constantFrom(
        '5',
        '5.0',
        '-5',
        '10',
        '',
        'x',
        'X',
        'ä',
        '0x',
        '1e3',
        '90071992547409930001',
      ),
      fc.constantFrom(ADDR, ADDR.toLowerCase(), 'f'.repeat(66), 'F'.repeat(66)),
      fc.constantFrom(5, -5, 0.5, 10, 9007199254740991),
      fc.boolean(),
      fc.constant(null),
    );
    const { object: body } = fc.letrec<{ body: Json; object: Json }>((tie) => ({
      body: fc.oneof(
        { depthSize: 'small' },
        plain,
        tie('object'),
        fc.array(tie('body'), { maxLength: 3 }),
      ),
      object: fc.dictionary(name, tie('body'), { maxKeys: 3 }),
    }));
    const ordered = plain.filter((v) => typeof v === 'string' || typeof v === 'number');
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join('.'));
    const list = fc.array(plain, { minLength: 1, maxLength: 4 });
    const { filter } = fc.letrec<{ filter: Filter; condition: Json }>((tie) => ({
      condition: fc.oneof(
        { depthSize: 'small' },
        plain,
        fc
          .record(
            {
              $eq: plain,
              $ne: plain,
              $gt: ordered,
              $gte: ordered,
              $lt: ordered,
              $lte: ordered,
              $in: list,
              $nin: list,
              $exists: fc.boolean(),
            },
            { requiredKeys: [] },
          )
          .filter((operators) => Object.keys(operators).length > 0),
        tie('condition')
          .filter((one) => typeof one === 'object' && one !== null)
          .map((one) => ({ $not: one })),
      ),
      filter: fc.oneof(
        { depthSize: 'small' },
        fc.dictionary(path, tie('condition') as fc.Arbitrary<Json>, { maxKeys: 3 }),
        fc.array(tie('filter'), { minLength: 1, maxLength: 3 }).map((list) => ({ $or: list })),
        fc.array(tie('filter'), { minLength: 1, maxLength: 3 }).map((list) => ({ $and: list })),
        tie('filter').map((one) => ({ $not: one })),
      ),
    }));
    await fc.assert(
      fc.asyncProperty(body, filter, async (value, query) => {
        const found = await matches(value, query);
        expect(found).toBe(matchesNaively(value, query));
      }),
      { numRuns: 1_000 },
    );
  });
});

const nested = (depth: number): Filter => (depth === 1 ? { a: 1 } : { $not: nested(depth - 1) });
const REFUSED: [string, Json, string][] = [
  ['a list', [], 'filter must be an object'],
  ['a text', 'type', 'filter must be an object'],
  [
    'an unknown operator',
    { 'data.addr': { $regex: 'x' } },
    'filter.data.addr.$regex is no operator',
  ],
  ['an operator where a path is', { $where: '1' }, 'filter.$where is no operator here'],
  ['an operator below $or', { $or: [{ a: 1 }, { $nor: [] }] }, 'filter.$or[1].$nor is no operator'],
  ['no operator', { a: {} }, 'filter.a must be a plain value or have'],
  ['a nested document', { a: { b: 1 } }, 'filter.a.b is no operator'],
  ['a list as a value', { a: [1] }, 'filter.a must be a text'],
  ['an empty $or', { $or: [] }, 'filter.$or must be a list of 1 to 100'],
  ['an $in that is no list', { a: { $in: 1 } }, 'filter.a.$in must be a list'],
  ['an object in $in', { a: { $in: [1, {}] } }, 'filter.a.$in[1] must be a text'],
  ['an order of flags', { a: { $gt: true } }, 'filter.a.$gt must be a number or a text'],
  ['an $exists that is no flag', { a: { $exists: 1 } }, 'filter.a.$exists must be true or false'],
  ['a $not of a value', { a: { $not: 1 } }, 'filter.a.$not must be an object'],
  ['an empty path', { '': 1 }, 'filter. must be a path'],
  ['a path with a gap', { 'a..b': 1 }, 'filter.a..b must be a path'],
  ['a path of 11 names', { [Array(11).fill('a').join('.')]: 1 }, 'must be a path'],
  ['a long name', { ['a'.repeat(65)]: 1 }, 'must be a path'],
  ['a depth of nine', nested(9), 'is nested more than 8 deep'],
  ['a depth of 5,000', nested(5_000), 'is nested more than 8 deep'],
  ['a list of 101', { a: { $in: Array(101).fill(1) } }, 'filter.a.$in must be a list of 1 to 100'],
  [
    '201 values',
    { $and: Array.from({ length: 3 }, () => ({ a: { $in: Array(67).fill(1) } })) },
    'at most 200 values',
  ],
  ['a long text', { a: 'x'.repeat(1_001) }, 'filter.a may have at most 1000 characters'],
  [
    'many long texts',
    { a: { $in: Array(9).fill('x'.repeat(1_000)) } },
    'filter may have at most 8192 bytes',
  ],
  ['NUL in a text', { a: '\0' }, 'filter.a must be Unicode text without NUL'],
  ['half a surrogate', { a: '\ud800' }, 'filter.a must be Unicode text without NUL'],
  ['a number that is not exact', { a: 2 ** 53 }, 'write it as a text in decimal digits'],
];

describe('An endpoint', () => {
  it.each(REFUSED)(
    'is not saved with a filter that has %s, and the refusal names the place',
    async (_, filter, text) => {
      const refusal = expect.objectContaining({
        code: 'invalid_request',
        detail: expect.stringContaining(text),
      });
      expect(() => checkFilter(filter)).toThrowError(refusal);
      await expect(rig.subscribe('/hook', { filter })).rejects.toThrowError(refusal);
    },
  );

  it('A filter of every bound at once is stored and read back as it was given', async () => {
    const filter = {
      ...nested(8),
      'data.addr': { $in: Array.from({ length: 100 }, (_, n) => `0x${n}`) },
      $or: [{ 'data.current.balance': { $gte: '1', $not: { $exists: false } } }],
    };
    const { endpoint } = await rig.subscribe('/hook', { filter });
    expect((await rig.webhooks.getEndpoint(endpoint.id)).filter).toEqual(filter);
  });

  it('An endpoint gets no delivery of an event that its filter refuses, and others get theirs', async () => {
    const filtered = await rig.subscribe('/filtered', {
      filter: { 'data.current.balance': { $gt: '9007199254740993' } },
    });
    const other = await rig.subscribe('/other');
    const ids = await rig.emit(
      walletEvent(undefined, '9007199254740993'),
      walletEvent(undefined, '9007199254740994'),
      walletEvent(undefined, '5'),
    );
    const eventsOf = async (id: string) =>
      (await rig.deliveriesOf(id)).map(({ eventId }) => eventId).sort();
    expect(await eventsOf(filtered.endpoint.id)).toEqual([ids[1]]);
    expect(await eventsOf(other.endpoint.id)).toEqual(ids.toSorted());
    await rig.deliver();
    expect(rig.receiver.requests.filter(({ path }) => path === '/filtered').length).toBe(1);
  });

  it('Bodies are made of the events to which an endpoint with a filter subscribes, and of no others', async () => {
    await rig.subscribe('/filtered', {
      filter: { type: 'no.such' },
      eventTypes: ['wallet.balance_changed'],
    });
    await rig.subscribe('/plain');
    const { owner } = rig.database;
    const bodiesOf = (...drafts: EventDraft[]) =>
      owner.begin(async (tx) => {
        await tx.sql`set local track_functions = 'pl'`;
        await rig.emitIn(tx, ...drafts);
        const rows = await tx.sql<{ calls: number }[]>`
        select calls::int from pg_stat_xact_user_functions
        where schemaname = 'tallyhook' and funcname = 'body_of'`;
        return rows[0]?.calls ?? 0;
      });
    const { subject, occurredAt } = walletEvent();
    const [addr, state] = [subject.slice('wallet:'.length), { balance: '1', status: 1 }];
    const changed: EventDraft = {
      type: 'wallet.balance_changed',
      subject,
      occurredAt,
      data: { addr, previous: state, current: state, explanation: 'explained', operations: [] },
    };
    const wallets = walletEvents(20);
    expect(await bodiesOf(...wallets)).toBe(0);
    expect(await bodiesOf(...wallets, changed, ...wallets)).toBe(1);
  });

  it('A filter sees the body of the first event with members that no event had', async () => {
    const data = { [`first_${rig.clock.now()}`]: 'yes' };
    const [name] = Object.keys(data);
    const { endpoint } = await rig.subscribe('/hook', { filter: { [`data.${name}`]: 'yes' } });
    await rig.emit({ ...walletEvent(), data: data as never }, walletEvent());
    expect((await rig.deliveriesOf(endpoint.id)).length).toBe(1);
  });

  it('A test event reaches its endpoint whatever the filter', async () => {
    const { endpoint } = await rig.subscribe('/hook', { filter: { type: 'nothing' } });
    const { eventId } = await rig.webhooks.sendTest(endpoint.id);
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(rig.receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([eventId]);
  });

  it('A text that jsonb cannot hold passes every filter: the event is not lost', async () => {
    const { endpoint } = await rig.subscribe('/hook', { filter: { type: 'nothing' } });
    await rig.emit({ ...walletEvent(), data: { addr: 'a\0b' } as never });
    await rig.deliver();
    expect((await rig.deliveriesOf(endpoint.id)).map(({ state }) => state)).toEqual(['delivered']);
  });

  it('A changed filter applies to every event that is committed after it, and null removes it', async () => {
    const { endpoint } = await rig.subscribe('/hook', { filter: { type: 'token.minted' } });
    const counted = async () => {
      await rig.emit(walletEvent());
      return (await rig.deliveriesOf(endpoint.id)).length;
    };
    expect(await counted()).toBe(0);
    await rig.webhooks.updateEndpoint(endpoint.id, { filter: { type: 'wallet.observed' } });
    expect(await counted()).toBe(1);
    await rig.webhooks.updateEndpoint(endpoint.id, { filter: { type: 'token.minted' } });
    expect(await counted()).toBe(1);
    await rig.webhooks.updateEndpoint(endpoint.id, { filter: null });
    expect(await counted()).toBe(2);
  });

  it('An event that was recorded before the endpoint and committed after it is filtered, too', async () => {
    const [late, refused] = [walletEvent(undefined, '7'), walletEvent(undefined, '8')];
    let endpoint = '';
    await rig.database.db.begin(async (tx) => {
      await rig.emitIn(tx, late, refused);
      endpoint = (await rig.subscribe('/hook', { filter: { 'data.current.balance': 7 } })).endpoint
        .id;
    });
    expect(await rig.deliveriesOf(endpoint)).toEqual([]);
    await rig.database.db.sql`select tallyhook.number_events(1000, true)`;
    expect((await rig.deliveriesOf(endpoint)).length).toBe(1);
  });

  it('A replay leaves out what the filter refuses, and a dry run counts without it', async () => {
    const { endpoint } = await rig.subscribe('/hook', { filter: { type: 'nothing' } });
    rig.clock.advance(7_200_000);
    const since = rig.clock.now() - 60_000;
    await rig.emit(walletEvent(undefined, '3'), walletEvent(undefined, '4'));
    rig.clock.advance(1_000);
    await rig.webhooks.updateEndpoint(endpoint.id, { filter: { 'data.current.balance': '4' } });
    const request = { endpointId: endpoint.id, since, types: [], which: 'missing' as const };
    expect(await rig.webhooks.countReplay(request)).toMatchObject({ queued: 1 });
    const { id } = await rig.webhooks.startReplay(request, 'ops');
    while (await rig.webhooks.replayOnce(rig.clock.now()));
    expect(await rig.webhooks.getReplay(id)).toMatchObject({ queued: 1 });
    await rig.deliver();
    const [request1] = rig.receiver.requests;
    expect(JSON.parse(request1?.body ?? '').data.current.balance).toBe('4');
  });
});

it('The example of every event type passes the filter that asks for its type, and no other', async () => {
  const { endpoint } = await rig.subscribe('/hook', { filter: { type: 'wallet.observed' } });
  for (const type of EVENT_TYPES) {
    const { matches: passes, body } = await rig.webhooks.testFilter(endpoint.id, { type });
    expect([type, passes]).toEqual([type, type === 'wallet.observed']);
    expect(body).toBe(jsonText(exampleOfEvent(type)));
    const own = await rig.webhooks.testFilter(endpoint.id, { type, filter: { type } });
    expect(own.matches).toBe(true);
  }
});

it('A filter is tested on a stored event, and on one of neither or both it says what to give', async () => {
  const { endpoint } = await rig.subscribe('/hook', {
    filter: { 'data.current.balance': { $gt: 1 } },
  });
  const [eventId] = await rig.emit(walletEvent(undefined, '2'));
  const tried = (input: object) => rig.webhooks.testFilter(endpoint.id, input);
  expect(await tried({ eventId })).toMatchObject({ matches: true });
  expect(await tried({ eventId, filter: null })).toMatchObject({ matches: true });
  expect(await tried({ eventId, filter: { 'data.current.balance': 1 } })).toMatchObject({
    matches: false,
  });
  for (const wrong of [{}, { eventId, type: 'wallet.observed' }])
    await expect(tried(wrong)).rejects.toMatchObject({ code: 'invalid_request' });
  await expect(
    tried({ eventId: `evt_${'0'.repeat(8)}-0000-7000-8000-000000000000` }),
  ).rejects.toMatchObject({ code: 'not_found' });
  await expect(tried({ eventId, filter: { a: { $b: 1 } } })).rejects.toMatchObject({
    code: 'invalid_request',
  });
});
