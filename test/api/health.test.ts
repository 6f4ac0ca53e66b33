/** Liveness, readiness and metrics, without a key. */
import { describe, expect, it } from 'vitest';
import { makeRefusals } from '../../src/db/checks/refusals.ts';
import { connect } from '../../src/db/connect.ts';
import { DatabaseError } from '../../src/db/sqlstate.ts';
import { openApi, useApi } from './rig.ts';

const api = useApi();

const withoutKey = { key: undefined };
/** Until it has this status: answers are kept for a second. */
const readyWith = async (status: number) => {
  const read = () => api.call('GET', '/readyz', withoutKey);
  await expect.poll(async () => (await read()).status).toBe(status);
  return read();
};

describe('Health', () => {
  it('A daemon with an intact database is ready', async () => {
    expect((await api.call('GET', '/healthz', withoutKey)).status).toBe(200);
    expect((await api.call('GET', '/readyz', withoutKey)).status).toBe(200);
  });

  it('A daemon with a disabled guard is not ready and names the guard', async () => {
    await api.database.owner.sql`
      alter table tallyhook.entries disable trigger entries_append_only`;
    const { status, headers, body } = await readyWith(503);
    expect({ status, code: body.code, check: body.check }).toEqual({
      status: 503,
      code: 'not_ready',
      check: 'guards',
    });
    expect(body.detail).toContain('entries.entries_append_only');
    expect(headers.get('retry-after')).toMatch(/^\d+$/);
    await api.database.owner.sql`
      alter table tallyhook.entries enable always trigger entries_append_only`;
    await readyWith(200);
  });

  it('A daemon that commits no heartbeat is not ready, and its scrape says that the database answers', async () => {
    const lost = await openApi(api.database.db, (deps) => ({ ...deps, isAlive: () => false }));
    const { status, body } = await lost.call('GET', '/readyz', withoutKey);
    expect({ status, code: body.code, check: body.check }).toEqual({
      status: 503,
      code: 'not_ready',
      check: 'heartbeat',
    });
    expect(body.detail).toContain('commits hang');
    expect((await lost.call('GET', '/metrics', withoutKey)).text).toContain(
      'tallyhook_database_up 1',
    );
  });

  it('A daemon whose database refused to record a write is not ready for ten seconds, or until one is recorded', async () => {
    let nowMs = 0;
    const refusals = makeRefusals(() => nowMs);
    const full = await openApi(api.database.db, (deps) => ({ ...deps, refusals }));
    refusals.failed(new DatabaseError('53300'));
    expect(refusals.within(1)).toBe(undefined);
    refusals.failed(new DatabaseError('53100'));
    const { status, body } = await full.call('GET', '/readyz', withoutKey);
    expect({ status, check: body.check }).toEqual({ status: 503, check: 'database' });
    expect(body.detail).toContain('53100');
    const ready = async () => (await full.call('GET', '/readyz', withoutKey)).status;
    nowMs = 9_999;
    expect(await ready()).toBe(503);
    nowMs = 10_000;
    expect(await ready()).toBe(200);
    const scrape = async () => (await full.call('GET', '/metrics', withoutKey)).text;
    expect(await scrape()).toContain('tallyhook_database_up 0');
    refusals.failed(new DatabaseError('53100'));
    expect(await ready()).toBe(503);
    refusals.accepted();
    expect(await ready()).toBe(200);
    await expect.poll(scrape).toContain('tallyhook_database_up 1');
  });

  it('A daemon whose database lacks a migration is not ready', async () => {
    const behind = await openApi(api.database.db, (deps) => ({
      ...deps,
      migrations: [
        ...deps.migrations,
        { idx: 99, tag: '0099', statements: [], hash: '', inSteps: false, compatibleFrom: 99 },
      ],
    }));
    const { status, body } = await behind.call('GET', '/readyz', withoutKey);
    expect({ status, check: body.check }).toEqual({ status: 503, check: 'migrations' });
  });

  it('A daemon stays ready on a newer database while that is compatible with its program', async () => {
    const { owner } = api.database;
    const ready = async (compatibleFrom: number) => {
      await owner.sql`
        insert into tallyhook.applied_migrations (idx, tag, hash, compatible_from)
        values (99, '0099_later', 'h', ${compatibleFrom})
        on conflict (idx) do update set compatible_from = ${compatibleFrom}`;
      const former = await openApi(api.database.db, (deps) => deps);
      const { status, body } = await former.call('GET', '/readyz', withoutKey);
      return { status, detail: body.detail };
    };
    try {
      expect(await ready(0)).toMatchObject({ status: 200 });
      expect(await ready(99)).toEqual({
        status: 503,
        detail: expect.stringContaining('0099_later does not work with it'),
      });
    } finally {
      await owner.sql`delete from tallyhook.applied_migrations where idx = 99`;
    }
  });

  it('Without its database a daemon is not ready and answers 503', async () => {
    const away = connect({ url: 'postgres://nobody@127.0.0.1:9/nothing', max: 1 });
    const key = await api.keyFor('admin');
    const lost = await openApi(api.database.db, (deps) => ({ ...deps, db: away }));
    const ready = await lost.call('GET', '/readyz', withoutKey);
    expect({ status: ready.status, check: ready.body.check }).toEqual({
      status: 503,
      check: 'database',
    });
    const { status, headers, body } = await lost.call('GET', '/api/operations', { key });
    expect({ status, code: body.code }).toEqual({ status: 503, code: 'database_unavailable' });
    expect(headers.get('retry-after')).toMatch(/^\d+$/);
    await away.end(0);
  });

  it.each([
    ['full', '53100'],
    ['read-only', '25006'],
    ['out of memory', '53200'],
  ])('While its database is %s, a change is answered 503 with Retry-After', async (_, code) => {
    const { sql } = api.database.owner;
    const key = await api.keyFor('admin');
    await sql.unsafe(`
      create function refuse() returns trigger language plpgsql as $$
        begin raise exception 'refused' using errcode = '${code}'; end $$;
      create trigger refuse before insert on tallyhook.freezes execute function refuse()`);
    const body = { reason: 'a test' };
    const { status, headers, body: problem } = await api.call('POST', '/api/freeze', { key, body });
    await sql.unsafe('drop function refuse cascade');
    expect({ status, code: problem.code }).toEqual({ status: 503, code: 'database_unavailable' });
    expect(headers.get('retry-after')).toMatch(/^\d+$/);
  });

  it('A hundred requests for metrics at once are answered by one scrape', async () => {
    let reads = 0;
    const { operations } = api.deps;
    const currentFreeze = () => {
      reads++;
      return operations.currentFreeze();
    };
    const counting = await openApi(api.database.db, (deps) => ({
      ...deps,
      operations: { ...deps.operations, currentFreeze },
    }));
    const scrapes = Array.from({ length: 100 }, () => counting.call('GET', '/metrics', withoutKey));
    expect(new Set((await Promise.all(scrapes)).map(({ status }) => status))).toEqual(
      new Set([200]),
    );
    expect(reads).toBe(1);
  });

  it('Metrics have the text format of Prometheus and contain no key', async () => {
    const { text, headers } = await api.call('GET', '/metrics', withoutKey);
    expect(headers.get('content-type')).toContain('version=0.0.4');
    expect(text).toMatch(/^tallyhook_backlog|^# HELP tallyhook_/m);
    expect(text).not.toContain('thk_');
  });

  it('HEAD is answered like GET without a body', async () => {
    const { status, text } = await api.call('HEAD', '/healthz', withoutKey);
    expect({ status, text }).toEqual({ status: 200, text: '' });
  });
});
