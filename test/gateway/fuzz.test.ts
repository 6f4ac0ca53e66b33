/**
 * Any request gets a documented answer or a problem document, and the recorded operations match
 * what the service applied.
 */
import fc from 'fast-check';
import { request } from 'undici';
import { afterAll, expect, it } from 'vitest';
import { z } from 'zod';
import { systemClock } from '../../src/kernel/clock.ts';
import { ERRORS } from '../../src/kernel/errors.ts';
import { tryParseJson } from '../../src/kernel/json.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { anyBytes, anyRequest, documented, exchanged } from '../harness/nonsense.ts';
import { userTokenOf } from '../harness/user-token.ts';
import { CLIENT, setUpGateway } from './rig.ts';

const sandbox = await startSandbox({ seed: 5, clock: systemClock, ...CLIENT });
const { rig, sql } = await setUpGateway({ origin: sandbox.url });
const user = await userTokenOf(sandbox, 1, CLIENT);
afterAll(() => sandbox.close());

const codes = Object.keys(ERRORS).filter((code) => code !== 'internal');
const problem = z.looseObject({ code: z.enum(codes), status: z.int().max(504) });

function expectDocumented(status: number, type: string, text: string): void {
  if (type.startsWith('text/html') || status === 302) return;
  const shape = type.startsWith('application/problem+json') ? problem : documented;
  expect(shape.safeParse(tryParseJson(text)).error, text.slice(0, 500)).toBeUndefined();
  expect(text).not.toMatch(/\.ts:\d|node_modules|at \w+ \(/);
}

/** Every applied write has an accepted operation with its number, and no operation is open. */
async function expectAgreement(): Promise<void> {
  const rows = await sql<{ state: string; mark: string | null }[]>`
    select state, coalesce(tx_log_no::text, tx_hash) as mark from tallyhook.operations
    where kind <> 'other'`;
  const states = Object.keys(Object.groupBy(rows, ({ state }) => state));
  expect(states.filter((state) => !['accepted', 'rejected'].includes(state))).toEqual([]);
  const marks = rows.filter(({ state }) => state === 'accepted').map(({ mark }) => mark);
  const effects = sandbox.control.effects().filter(({ kind }) => kind !== 'other');
  const applied = effects.map(({ tx_log_no: no, tx_hash: hash }) => (no ?? hash ?? '').toString());
  expect(marks.toSorted()).toEqual(applied.toSorted());
}

it('Any HTTP request gets a documented answer or a problem document', async () => {
  const key = { 'tallyhook-key': rig.secret };
  const { clientId, clientSecret } = CLIENT;
  const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
  const credentials: Record<string, Record<string, string>> = {
    client: { authorization: `Bearer ${rig.secret}` },
    user: { authorization: `Bearer ${user}`, ...key },
    basic: { authorization: `Basic ${basic}` },
    noise: { authorization: 'Bearer ~~~', ...key },
  };
  await fc.assert(
    fc.asyncProperty(anyRequest, async ({ method, path, query, body, who, type }) => {
      const response = await request(`${rig.url}${path}${query}`, {
        method: method as 'GET',
        headers: { ...credentials[who], ...(type ? { 'content-type': type } : {}) },
        body: method === 'GET' ? null : body,
      });
      const answered = String(response.headers['content-type'] ?? '');
      expectDocumented(response.statusCode, answered, await response.body.text());
    }),
    { numRuns: 400 },
  );
  await expectAgreement();
});

it('Bytes that are not HTTP are refused and not recorded', async () => {
  const count = async () => (await sql`select from tallyhook.operations`).count;
  const before = await count();
  await fc.assert(
    fc.asyncProperty(anyBytes, async (bytes) => {
      const text = await exchanged(Number(new URL(rig.url).port), bytes);
      if (text === '') return;
      expect(text).toMatch(/^HTTP\/1\.1 [234]/);
      const [head = '', body = ''] = text.split('\r\n\r\n');
      const type = /content-type: (.*)/i.exec(head)?.[1] ?? '';
      if (body !== '') expectDocumented(Number(text.slice(9, 12)), type, body);
    }),
    { numRuns: 150 },
  );
  expect(await count()).toBe(before);
});

it('Valid, invalid and oversized writes leave the operations and the service in agreement', async () => {
  const payment = fc.record({
    toAddr: fc.constantFrom(sandbox.control.state().members[0]?.addr ?? '', '0x1', ''),
    amount: fc.constantFrom(1, 7, 0, -1, 1.5, '3', 10 ** 40),
    reasonType: fc.constantFrom('x', 'y'.repeat(2 ** 20), null),
  });
  await fc.assert(
    fc.asyncProperty(payment, async (json) => {
      const headers = { 'content-type': 'application/json' };
      const response = await rig.give(headers, JSON.stringify(json));
      const type = String(response.headers['content-type']);
      expectDocumented(response.status, type, response.bytes.toString());
    }),
    { numRuns: 60 },
  );
  await expectAgreement();
});
