/** `GET /api/alerts`. */
import { expect, it } from 'vitest';
import { useApi } from './rig.ts';

const api = useApi();
const idOf = (n: number) => `alr_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2${n}`;

it('What is raised is listed oldest first, in pages', async () => {
  for (const n of [1, 2])
    await api.database.owner.sql`
      insert into tallyhook.alerts (id, rule, subject, raised_at, detail)
      values (${idOf(n)}, ${`rule-${n}`}, 'x', '2026-01-01T00:00:00Z', '{"amount":"5"}')`;
  const { body } = await api.call('GET', '/api/alerts?limit=1');
  expect(body.data).toEqual([
    {
      id: idOf(1),
      rule: 'rule-1',
      raised_at: '2026-01-01T00:00:00.000Z',
      detail: { amount: '5' },
    },
  ]);
  const next = await api.call('GET', `/api/alerts?cursor=${body.next_cursor}`);
  expect(next.body).toMatchObject({ data: [{ id: idOf(2) }], next_cursor: null });
});
