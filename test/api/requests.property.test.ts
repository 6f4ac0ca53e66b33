/** Random paths, queries and bodies are answered as documented and never cause internal errors. */
import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { useApi } from './rig.ts';
import { ADDR_A, HASH } from './writes.ts';

const api = useApi();
let admin: string;

beforeAll(async () => {
  admin = await api.keyFor('admin');
});

const UUID = '0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b';
/** Mostly values that are nearly valid. */
const value = fc.oneof(
  fc.constantFrom(
    '',
    '0',
    '-1',
    '1',
    '500',
    '1e9',
    '00',
    '1.5',
    '\0',
    'a\0b',
    '\ud800',
    '%',
    '%zz',
    '../..',
    '9'.repeat(30),
    '9'.repeat(999),
    '9223372036854775808',
    'null',
    'true',
    '*',
    'wallet.*',
    '1970-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999Z',
    '0000-01-01T00:00:00Z',
    '2026-02-30',
    ...['op', 'evt', 'ep', 'dlv', 'drf', 'rep', 'per', 'key', 'wat'].map(
      (prefix) => `${prefix}_${UUID}`,
    ),
    ADDR_A,
    HASH,
    "' or 1=1 --",
    '__proto__',
    'constructor',
    'accepted',
    'reconciliation',
    ...['op_', '9', ADDR_A, '\0', `1 obs_${UUID}`].map((place) =>
      Buffer.from(place).toString('base64url'),
    ),
  ),
  fc.string({ unit: 'binary', maxLength: 60 }),
);
const PARAMETERS = (
  'limit cursor state kind addr contract_id token_id tx_log_no tx_hash idempotency_key ' +
  'reference since until as_of known_at account types operation_id endpoint_id event_id ' +
  'event_type format cause assignee __proto__'
).split(' ');
/** Parameters that accept almost any text, which then reaches the database. */
const FREE_TEXTS = ['reference', 'idempotency_key', 'account', 'kind'];
const query = fc.oneof(
  fc.array(fc.tuple(fc.constantFrom(...FREE_TEXTS), value), { minLength: 1, maxLength: 1 }),
  fc.array(fc.tuple(fc.constantFrom(...PARAMETERS), value), { maxLength: 3 }),
);

const MEMBERS = (
  'kind addr contract_id token_id name owner scopes url from to event_types ordering ' +
  'signing rate_per_s headers description overlap_s tx_log_no tx_hash occurred_at to_addr ' +
  'operation_no amount operation_id distinct outcome reason limits kinds amount_per_day ' +
  'ids proposal assignee n sign_offs dry_run'
).split(' ');
const { body } = fc.letrec<{ body: unknown }>((tie) => ({
  body: fc.oneof(
    { depthSize: 'small' },
    value,
    fc.constantFrom(
      'wallet',
      'token',
      'contract',
      'read',
      'v1',
      'http://127.0.0.1:4567/',
      'subject',
    ),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('body'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...MEMBERS), tie('body'), { maxKeys: 5 }),
  ),
}));

/** Valid bodies by path, in which one field is replaced. */
const VALID_BODIES: [path: string, body: object][] = [
  ['/api/watches', { kind: 'wallet', addr: ADDR_A }],
  ['/api/watches', { kind: 'token', contract_id: '1', token_id: '2' }],
  ['/api/keys', { name: 'n', owner: 'o', scopes: ['read'] }],
  ['/api/keys', { name: 'n', owner: 'o', scopes: ['gateway'], limits: { kinds: ['give'] } }],
  [
    '/api/operations',
    {
      kind: 'give',
      tx_app_no: '7',
      tx_log_no: '1',
      occurred_at: '2026-01-01T00:00:00Z',
      to_addr: ADDR_A,
      operation_no: '1',
      amount: '1',
      reference: 'r',
      reason_type: 't',
    },
  ],
  [
    '/api/operations',
    {
      kind: 'mint',
      tx_hash: HASH,
      contract_id: '1',
      token_id: '2',
      to_addr: ADDR_A,
      occurred_at: '2026-01-01T00:00:00Z',
      token_uri: 'u',
      meta_data: '{}',
      distinct: true,
    },
  ],
  [`/api/operations/op_${UUID}/decide`, { outcome: 'executed', reason: 'r' }],
  [`/api/operations/op_${UUID}/approve`, { n: 1, outcome: 'executed' }],
  ['/api/drifts/assign', { ids: [`drf_${UUID}`], assignee: 'ann' }],
  ['/api/drifts/propose', { ids: [`drf_${UUID}`], proposal: 'book', reason: 'r' }],
  [
    `/api/drifts/drf_${UUID}/propose`,
    { proposal: 'link', operation_id: `op_${UUID}`, reason: 'r' },
  ],
  ['/api/drifts/approve', { ids: [`drf_${UUID}`], proposal: 'book', n: 1 }],
  ['/api/quarantine/release', { kind: 'operation', id: `op_${UUID}`, reason: 'r' }],
  ['/api/endpoints', { url: 'http://127.0.0.1:4567/', event_types: ['*'], ordering: 'none' }],
  [
    '/api/reports',
    { kind: 'reconciliation', from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' },
  ],
];
const nearlyValid = fc
  .tuple(fc.constantFrom(...VALID_BODIES), fc.constantFrom(...MEMBERS), body)
  .chain(([[path, whole], member, wrong]) => {
    const members = Object.keys(whole);
    const any = fc.constantFrom(...members, member, 'description');
    return any.map((name) => ({ method: 'POST', path, sent: { ...whole, [name]: wrong } }));
  });

function routes(): { method: string; path: string }[] {
  return api.api.routes.filter(({ method, path }) => method !== 'ALL' && path.startsWith('/api'));
}

it('No path and no query causes an internal error', async () => {
  const path = fc.nat().map((n) => routes()[n % routes().length]?.path ?? '');
  await fc.assert(
    fc.asyncProperty(
      path,
      fc.array(value, { maxLength: 2 }),
      query,
      async (route, parts, parameters) => {
        const [first = '1', second = first] = parts;
        let n = 0;
        const place = route.replace(/:\w+/g, () => encoded(n++ === 0 ? first : second));
        const text = parameters.map(([name, text]) => `${name}=${encoded(text)}`).join('&');
        const { status } = await api.call('GET', `${place}?${text}`, { key: admin });
        expect(status).toBeLessThan(500);
      },
    ),
    { numRuns: 600 },
  );
  expect(api.lines.filter((line) => line.includes('failed'))).toEqual([]);
});

it('No body causes an internal error', async () => {
  const writes = routes().filter(({ method }) => method === 'POST' || method === 'PATCH');
  const anywhere = fc
    .tuple(fc.constantFrom(...writes), body)
    .map(([{ method, path }, sent]) => ({ method, path, sent }));
  await fc.assert(
    fc.asyncProperty(fc.oneof(anywhere, nearlyValid), async ({ method, path, sent }) => {
      const place = path.replace(/:\w+/g, `ep_${UUID}`);
      const { status } = await api.call(method, place, { key: admin, body: sent });
      expect(status).toBeLessThan(500);
    }),
    { numRuns: 400 },
  );
  expect(api.lines.filter((line) => line.includes('failed'))).toEqual([]);
});

/** A lone surrogate cannot be encoded. */
function encoded(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    return text.replace(/[#?&/]/g, '');
  }
}
