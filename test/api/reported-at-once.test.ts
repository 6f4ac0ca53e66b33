/** Reports of several requests at once: they share commits, and each has its own outcome. */
import { expect, it } from 'vitest';
import { useApi } from './rig.ts';
import { aGive, aTransfer } from './writes.ts';

const REPORTS = 40;
const api = useApi();

const report = (body: unknown, key?: string) =>
  api.call('POST', '/api/operations', { body, ...(key === undefined ? {} : { key }) });
const gives = () => Array.from({ length: REPORTS }, () => aGive());

/** When operations were recorded: one time for each commit. */
async function recordedAt(ids: readonly string[]): Promise<Set<number>> {
  const rows = await api.database.owner.sql<{ at: number }[]>`
    select recorded_at as at from tallyhook.operations where id = any(${[...ids]}::text[])`;
  expect(rows).toHaveLength(ids.length);
  return new Set(rows.map(({ at }) => at));
}

it('Reports of one operation that arrive at once share commits', async () => {
  const made = await Promise.all(gives().map((one) => report(one)));
  expect(made.map(({ status }) => status)).toEqual(made.map(() => 201));
  const commits = await recordedAt(made.map(({ body }) => body.id));
  expect(commits.size).toBeLessThan(REPORTS / 4);
});

it('Each keeps its owner, its key and its audit entry', async () => {
  const keys = [await api.keyFor('manage'), await api.keyFor('admin')];
  const made = await Promise.all(gives().map((one, n) => report(one, keys[n % 2])));
  const ids = made.map(({ body }) => body.id);
  expect((await recordedAt(ids)).size).toBeLessThan(REPORTS / 4);
  const rows = await api.database.owner.sql<{ owner: string; named: string; key: string }[]>`
    select o.owner, o.evidence #>> '{report,by}' as named, k.owner as key
    from unnest(${ids}::text[]) with ordinality as x(id, n)
    join tallyhook.operations o on o.id = x.id
    join tallyhook.keys k on k.id = o.key_id and k.id = o.evidence #>> '{report,key_id}'
    order by x.n`;
  const owner = (n: number) => `owner of ${n % 2 === 0 ? 'manage' : 'admin'}`;
  expect(rows.map((row) => Object.values(row))).toEqual(
    ids.map((_, n) => [owner(n), owner(n), owner(n)]),
  );
  const audit = await api.call('GET', `/api/audit?limit=${REPORTS}`);
  const entries = audit.body.data.map(({ owner: by, result }) => [by, result]);
  expect(entries.toSorted()).toEqual(ids.map((_, n) => [owner(n), 'done']).toSorted());
});

it('Reports that are refused harm none of the others', async () => {
  const known = aGive();
  const { body } = await report(known);
  const lost = await api.recordLost({ fields: { amount: 311n } });
  const refused: [object, number, object][] = [
    [{ ...known, amount: '11' }, 409, { code: 'conflict', operation_id: body.id }],
    [aTransfer({ amount: '311' }), 409, { code: 'matches_open_operation' }],
    [aTransfer({ amount: '312', operation_id: lost }), 409, { code: 'conflict' }],
    [aGive({ amount: '0' }), 400, { code: 'invalid_request' }],
    [known, 200, { id: body.id }],
  ];
  const answers = Promise.all(refused.map(([input]) => report(input)));
  const made = await Promise.all(gives().map((one) => report(one)));
  expect(made.map(({ status }) => status)).toEqual(made.map(() => 201));
  expect((await answers).map(({ status, body: answer }) => [status, answer])).toEqual(
    refused.map(([, status, members]) => [status, expect.objectContaining(members)]),
  );
});

it('A report that the database refuses harms none of the others', async () => {
  await api.database.owner.sql.unsafe(`
    alter table tallyhook.operations add constraint no_poison check (reference <> 'poison')`);
  const inputs = gives().map((one, n) => (n === 20 ? { ...one, reference: 'poison' } : one));
  const made = await Promise.all(
    inputs.map(async (body) => {
      const authorization = `Bearer ${await api.keyFor('admin')}`;
      const headers = { authorization, 'content-type': 'application/json' };
      const request = { method: 'POST', headers, body: JSON.stringify(body) };
      return (await api.api.request('/api/operations', request)).status;
    }),
  );
  expect(made).toEqual(inputs.map((_, n) => (n === 20 ? 500 : 201)));
});

it('Reports of the same write at once record it once', async () => {
  const one = aGive();
  const repeats = await Promise.all(Array.from({ length: REPORTS }, () => report(one)));
  const news = repeats.filter(({ status }) => status === 201);
  expect(news).toHaveLength(1);
  expect(repeats.filter(({ status }) => status === 200)).toHaveLength(REPORTS - 1);
  expect(new Set(repeats.map(({ body }) => body.id)).size).toBe(1);
});

it('Reports of one number at once with other facts are refused with the name of the first', async () => {
  const one = aGive();
  const inputs = Array.from({ length: REPORTS }, (_, n) => ({ ...one, amount: `${n + 1}` }));
  const answers = await Promise.all(inputs.map((input) => report(input)));
  const [made, ...others] = answers.toSorted((a, b) => a.status - b.status);
  expect(made?.status).toBe(201);
  expect(others.map(({ status, body }) => [status, body.operation_id])).toEqual(
    others.map(() => [409, made?.body.id]),
  );
});

it('Small arrays share commits with single reports', async () => {
  const answers = await Promise.all(
    gives().map((one, n) => report(n % 2 === 0 ? one : [one, aGive(), one])),
  );
  const ids = answers.flatMap(({ body }, n) =>
    n % 2 === 0 ? body.id : body.data.map(({ operation_id: id }) => String(id)),
  );
  expect(
    answers.filter((_, n) => n % 2 === 1).map(({ body }) => [body.recorded, body.known]),
  ).toEqual(Array.from({ length: REPORTS / 2 }, () => [2, 1]));
  expect((await recordedAt([...new Set(ids)])).size).toBeLessThan(REPORTS / 4);
});
