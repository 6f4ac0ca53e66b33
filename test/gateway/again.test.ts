/** A write is sent again only when nothing left: a few times, each a row, within a budget. */
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeRetryBudget } from '../../src/gateway/send.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { BODY, GIVE, openRig, type Rig } from './gateway-house.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

/** A port of this machine where nobody listens, and a service that can begin to. */
async function closedPort() {
  const server = createServer((request, response) => {
    request.resume();
    response.end('{"status":200,"data":{"tx_app_no":1,"tx_log_no":5}}');
  });
  const listen = (port: number) =>
    new Promise<number>((resolve) => {
      server.listen(port, '127.0.0.1', () => {
        const address = server.address();
        resolve(typeof address === 'object' && address ? address.port : 0);
      });
    });
  const port = await listen(0);
  await new Promise((resolve) => server.close(resolve));
  return {
    origin: `http://127.0.0.1:${port}`,
    open: () => listen(port),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const give = (rig: Rig, key?: string) =>
  rig.call('POST', GIVE, {
    headers: {
      authorization: `Bearer ${rig.secret}`,
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    body: BODY,
  });

async function sendsOf(id: unknown) {
  const rows = await database.owner.sql<{ n: number; after: string | null }[]>`
    select n, after from tallyhook.sends where operation_id = ${String(id)} order by n`;
  return rows.map(({ n, after }) => [n, after]);
}

describe('A write that nobody took', () => {
  test('Is tried three times, each a row, and its key is free again', async () => {
    const port = await closedPort();
    const rig = await openRig(database.db, { txUrl: port.origin });
    try {
      const first = await give(rig, 'refused');
      expect(first).toMatchObject({
        status: 502,
        json: { code: 'upstream_not_reached', detail: 'connection_refused' },
        headers: { 'tallyhook-outcome': 'rejected' },
      });
      expect(await sendsOf(first.headers['tallyhook-operation'])).toEqual([
        [1, null],
        [2, 'connection_refused'],
        [3, 'connection_refused'],
      ]);
      const second = await give(rig, 'refused');
      expect(second.headers['tallyhook-operation']).not.toBe(first.headers['tallyhook-operation']);
    } finally {
      await rig.close();
    }
  });

  test('Is accepted when the service comes back in time', async () => {
    const port = await closedPort();
    const rig = await openRig(database.db, { txUrl: port.origin });
    try {
      const telling = give(rig, 'comes back');
      await expect
        .poll(async () => {
          const rows = await database.owner.sql`
            select 1 as one from tallyhook.sends s
            join tallyhook.operations o on o.id = s.operation_id
            where s.after is not null and o.idempotency_key = 'comes back'`;
          return rows.length;
        })
        .toBeGreaterThan(0);
      await port.open();
      const told = await telling;
      expect(told).toMatchObject({ status: 200, headers: { 'tallyhook-outcome': 'accepted' } });
      expect((await sendsOf(told.headers['tallyhook-operation'])).length).toBeGreaterThan(1);
    } finally {
      await rig.close();
      await port.close();
    }
  });

  test('Is not tried again once the budget is spent', async () => {
    const port = await closedPort();
    const rig = await openRig(database.db, { txUrl: port.origin });
    try {
      const told = await Promise.all(Array.from({ length: 12 }, () => give(rig)));
      const counts = await Promise.all(
        told.map(async ({ headers }) => (await sendsOf(headers['tallyhook-operation'])).length),
      );
      // Twelve first sends, and the ten sends again that a fresh daemon has saved, and one earned.
      expect(counts.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(12 + 11);
      expect(told.every(({ status }) => status === 502)).toBe(true);
    } finally {
      await rig.close();
    }
  });
});

describe('The budget of sends again', () => {
  test('Is ten at first, and one for ten first sends', () => {
    const budget = makeRetryBudget();
    const taken = () => Array.from({ length: 20 }, () => budget.take()).filter(Boolean).length;
    expect(taken()).toBe(10);
    for (let i = 0; i < 9; i++) budget.earn();
    expect(taken()).toBe(0);
    budget.earn();
    expect(taken()).toBe(1);
    for (let i = 0; i < 1_000; i++) budget.earn();
    expect(taken()).toBe(10);
  });
});
