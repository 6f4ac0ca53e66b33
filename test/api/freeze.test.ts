/** Freezing and releasing all writes through the API. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { openApi, type TestApi } from './harness.ts';

let database: TestDatabase;
let api: TestApi;

beforeAll(async () => {
  database = await createDatabase();
  api = await openApi(database.db);
});
afterAll(() => database.drop());

const order = (path: string, reason: unknown, key?: string) =>
  api.ask('POST', `/api/${path}`, { body: { reason }, ...(key === undefined ? {} : { key }) });
const frozen = async () => (await api.ask('GET', '/api/status')).body.freeze;

test('A freeze stands until it is released, and names who and why', async () => {
  expect(await frozen()).toBeNull();
  const first = await order('freeze', 'a key leaked');
  expect(first.body).toMatchObject({ frozen_by: 'owner of admin', reason: 'a key leaked' });
  const second = await order('freeze', 'once more');
  expect(second.body).toEqual(first.body);
  expect(await frozen()).toEqual(first.body);
  const ended = await order('unfreeze', 'it is replaced');
  expect(ended.body).toMatchObject({
    ...{ reason: 'a key leaked', release_reason: 'it is replaced' },
    released_by: 'owner of admin',
  });
  expect(await frozen()).toBeNull();
});

test('There is nothing to release twice', async () => {
  const { status, body } = await order('unfreeze', 'again');
  expect({ status, code: body.code }).toEqual({ status: 409, code: 'conflict' });
});

test.each([undefined, '', 7, 'a\0b', 'x'.repeat(2_001)])(
  'A reason is needed: %j is none',
  async (reason) => {
    expect((await order('freeze', reason)).body.code).toBe('invalid_request');
  },
);

test('Only the scope admin stops writes', async () => {
  const { body } = await order('freeze', 'try', await api.keyFor('manage', 'gateway', 'read'));
  expect(body.code).toBe('forbidden');
});
