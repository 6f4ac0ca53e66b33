/**
 * Whatever is sent, the caller gets the service's own shape or a problem document, and the journal
 * holds what the service did: nothing more, nothing less.
 */
import fc from 'fast-check';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { systemClock } from '../../src/kernel/clock.ts';
import { ERRORS } from '../../src/kernel/errors.ts';
import { tryParseJson } from '../../src/kernel/json.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { anyBytes, anyRequest, documented, exchanged } from '../harness/nonsense.ts';
import { userTokenOf } from '../harness/user-token.ts';
import { openRig, type Rig } from './gateway-house.ts';

const CLIENT = { clientId: 'client', clientSecret: 'hush-client-secret' };

let database: TestDatabase;
let sandbox: Sandbox;
let rig: Rig;
let user: string;

beforeAll(async () => {
  database = await createDatabase();
  sandbox = await startSandbox({ seed: 5, clock: systemClock, ...CLIENT });
  rig = await openRig(database.db, { origin: sandbox.url });
  user = await userTokenOf(sandbox, 1, CLIENT);
});
afterAll(async () => {
  await rig.close();
  await sandbox.close();
  await database.drop();
});

const codes = Object.keys(ERRORS).filter((code) => code !== 'internal');
const problem = z.looseObject({ code: z.enum(codes), status: z.int().max(504) });

function expectJudged(status: number, type: string, text: string): void {
  if (type.startsWith('text/html') || status === 302) return;
  const shape = type.startsWith('application/problem+json') ? problem : documented;
  expect(shape.safeParse(tryParseJson(text)).error, text.slice(0, 500)).toBeUndefined();
  expect(text).not.toMatch(/\.ts:\d|node_modules|at \w+ \(/);
}

/** Every applied write has its operation with its number, and every operation has ended. */
async function expectAgreement(): Promise<void> {
  const rows = await database.owner.sql<{ state: string; mark: string | null }[]>`
    select state, coalesce(tx_log_no::text, tx_hash) as mark from tallyhook.operations
    where kind <> 'other'`;
  const states = Object.keys(Object.groupBy(rows, ({ state }) => state));
  expect(states.filter((state) => !['accepted', 'rejected'].includes(state))).toEqual([]);
  const marks = rows.filter(({ state }) => state === 'accepted').map(({ mark }) => mark);
  const effects = sandbox.control.effects().filter(({ kind }) => kind !== 'other');
  const applied = effects.map(({ tx_log_no: no, tx_hash: hash }) => (no ?? hash ?? '').toString());
  expect(marks.toSorted()).toEqual(applied.toSorted());
}

test('Any request of HTTP gets an answer of the interface or a problem document', async () => {
  const key = { 'tallyhook-key': rig.secret };
  const basic = Buffer.from('client:hush-client-secret').toString('base64');
  await fc.assert(
    fc.asyncProperty(anyRequest, async ({ method, path, query, body, who, type }) => {
      const authorization: Record<string, Record<string, string>> = {
        client: { authorization: `Bearer ${rig.secret}` },
        user: { authorization: `Bearer ${user}`, ...key },
        basic: { authorization: `Basic ${basic}` },
        nobody: {},
        noise: { authorization: 'Bearer ~~~', ...key },
      };
      const answer = await request(`${rig.url}${path}${query}`, {
        method: method as 'GET',
        headers: { ...authorization[who], ...(type ? { 'content-type': type } : {}) },
        body: method === 'GET' ? null : body,
      });
      const said = String(answer.headers['content-type'] ?? '');
      expectJudged(answer.statusCode, said, await answer.body.text());
    }),
    { numRuns: 400 },
  );
  await expectAgreement();
});

test('Bytes that are no HTTP are refused, and nothing is recorded', async () => {
  const count = async () => (await database.owner.sql`select from tallyhook.operations`).count;
  const before = await count();
  await fc.assert(
    fc.asyncProperty(anyBytes, async (each) => {
      const text = await exchanged(Number(new URL(rig.url).port), each);
      if (text === '') return;
      expect(text).toMatch(/^HTTP\/1\.1 [234]/);
      const [head = '', body = ''] = text.split('\r\n\r\n');
      const type = /content-type: (.*)/i.exec(head)?.[1] ?? '';
      if (body !== '') expectJudged(Number(text.slice(9, 12)), type, body);
    }),
    { numRuns: 150 },
  );
  expect(await count()).toBe(before);
});

test('Writes that are refused, oversized and well-formed ones in turns: all agree', async () => {
  const ada = sandbox.control.state().members[0]?.addr ?? '';
  const payment = fc.record({
    toAddr: fc.constantFrom(ada, '0x1', ''),
    amount: fc.constantFrom(1, 7, 0, -1, 1.5, '3', 10 ** 40),
    reasonType: fc.constantFrom('x', 'y'.repeat(2 ** 20), null),
  });
  await fc.assert(
    fc.asyncProperty(payment, async (json) => {
      const answer = await rig.call('POST', '/v1/app/token/operations/1/give', {
        headers: { authorization: `Bearer ${rig.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify(json),
      });
      const said = String(answer.headers['content-type']);
      expectJudged(answer.status, said, answer.bytes.toString());
    }),
    { numRuns: 60 },
  );
  await expectAgreement();
});
