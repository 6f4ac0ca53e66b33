/** The OpenAPI document of the control surface, compared with the surface. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { must } from '../../../src/kernel/errors.ts';
import { type Caller, startCaller, stopAll, UNUSED_ADDRESS } from '../client.ts';

const operation = z.looseObject({
  parameters: z
    .array(z.looseObject({ name: z.string(), in: z.enum(['path', 'query']) }))
    .default([]),
  requestBody: z
    .object({
      content: z.object({
        'application/json': z.object({ schema: z.looseObject({}), example: z.looseObject({}) }),
      }),
    })
    .optional(),
});
const documentSchema = z.looseObject({
  openapi: z.literal('3.1.0'),
  paths: z.record(z.string(), z.partialRecord(z.enum(['get', 'post', 'delete']), operation)),
});

const METHODS = ['get', 'post', 'delete', 'put', 'patch'];
let caller: Caller;
let document: z.output<typeof documentSchema>;

beforeAll(async () => {
  caller = await startCaller();
  const { body } = await caller.send('GET', '/_sandbox/openapi.json');
  document = documentSchema.parse(body);
});
afterAll(stopAll);

const VALUES: Record<string, string> = { addr: UNUSED_ADDRESS, contract_id: '3', token_id: '1' };
const filled = (path: string) => path.replace(/\{(\w+)\}/g, (_all, name) => VALUES[name] ?? '1');
const schemaOf = (path: string) =>
  must(document.paths[path]?.post?.requestBody, path).content['application/json'].schema;

it('Every path accepts exactly the methods of the document', async () => {
  expect(Object.keys(document.paths).length).toBeGreaterThan(12);
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const method of METHODS) {
      const options = method === 'post' ? { json: {} } : {};
      const { status } = await caller.send(method.toUpperCase(), filled(path), options);
      if (method in operations) expect([path, method, status]).not.toContain(405);
      else expect([path, method, [404, 405].includes(status)]).toEqual([path, method, true]);
      expect(status).not.toBe(500);
    }
  }
});

it('The document describes every path segment and query parameter', async () => {
  for (const [path, operations] of Object.entries(document.paths)) {
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    for (const each of Object.values(operations)) {
      const described = each?.parameters.filter((parameter) => parameter.in === 'path') ?? [];
      expect(described.map(({ name }) => name)).toEqual(names);
    }
  }
  const queries = document.paths['/_sandbox/requests']?.get?.parameters.map(({ name }) => name);
  expect(queries).toEqual(['after', 'limit']);
});

describe('The surface accepts exactly the bodies that the document allows', () => {
  const BODIES: [path: string, good: object[], bad: unknown[]][] = [
    [
      '/_sandbox/wallets/{addr}',
      [{}, { amt_token: 5 }, { amt_token: '12345678901234567890' }, { delta: '-1', status: 9 }],
      [{ amt_token: 1.5 }, { status: 4 }, { balance: 1 }, { delta: '1e3' }, []],
    ],
    [
      '/_sandbox/tokens/{contract_id}/{token_id}',
      [{ locked: true }, { owner: UNUSED_ADDRESS, status: 3 }, { extra: '{}' }],
      [{ owner: '0x1' }, { status: 4 }, { locked: 1 }],
    ],
    ['/_sandbox/tokens/fail-next', [{}, { count: 2 }], [{ count: -1 }, { count: 'x' }]],
    ['/_sandbox/members', [{ nickname: 'Zoe' }], [{}, { nickname: '' }]],
    [
      '/_sandbox/maintenance',
      [{ state: 'on' }, { state: 'announced', start_in_ms: 5, message: 'm' }, { state: 'off' }],
      [{ state: 'announced' }, { state: 'x' }],
    ],
    [
      '/_sandbox/faults',
      [
        { kind: 'late', endpoint: 'give', delay_ms: 5, hold: true, count: 2 },
        { kind: 'throttle', retry_after: 'date', retry_after_s: 3, skip: 1 },
        { kind: 'status', status: 502, applied: true },
        { kind: 'error', code: '198', figures: { amount: '7' } },
      ],
      [{ kind: 'late', status: 500 }, { kind: 'status' }, { kind: 'throttle', count: 0 }, {}],
    ],
    ['/_sandbox/clock', [{ advance_ms: 5 }], [{ advance_ms: -5 }, {}]],
    [
      '/_sandbox/switches',
      [{ fee: 'deducted', transfer_max: '99' }, { reason_types: ['a'] }, { rate_per_s: null }],
      [{ fee: 'none' }, { per_page_max: 0 }, { fees: 'on_top' }],
    ],
    ['/_sandbox/redirect-uris', [{ uri: 'http://127.0.0.1:1/x' }], [{}, { uri: 5 }]],
    ['/_sandbox/reset', [{}, { seed: 7, switches: { fee: 'deducted' } }], [{ seed: 'x' }]],
  ];

  it.each(BODIES)('%s', async (path, good, bad) => {
    const schema = z.fromJSONSchema(schemaOf(path));
    for (const json of [...good, ...bad]) {
      const allowed = schema.safeParse(json).success;
      const { status } = await caller.send('POST', filled(path), { json: JSON.stringify(json) });
      const valid = good.some((each) => each === json);
      expect([json, allowed, status === 200]).toEqual([json, valid, valid]);
    }
  });

  it('Every example is accepted', async () => {
    for (const [path, { post }] of Object.entries(document.paths)) {
      if (!post?.requestBody) continue;
      const json = post.requestBody.content['application/json'].example;
      expect([path, (await caller.send('POST', filled(path), { json })).status]).toEqual([
        path,
        200,
      ]);
    }
  });

  it('The table of this test has every path with a body', () => {
    const known = new Set(BODIES.map(([path]) => path));
    const paths = Object.entries(document.paths).filter(([, { post }]) => post);
    expect(paths.map(([path]) => path).filter((path) => !known.has(path))).toEqual([]);
  });
});
