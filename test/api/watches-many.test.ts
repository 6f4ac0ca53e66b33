/** Streams of watches: many lines of NDJSON or CSV, added or removed in batches. */
import { beforeEach, describe, expect, it } from 'vitest';
import { useApi } from './rig.ts';
import { ADDR_A, ADDR_B, aWrite } from './writes.ts';

const api = useApi();
const NDJSON = 'application/x-ndjson';
const CSV = 'text/csv';

beforeEach(async () => {
  await api.database.owner.sql`delete from tallyhook.watches`;
  await api.database.owner.sql`delete from tallyhook.targets`;
});

interface Answered {
  line?: number;
  problem: { code: string; detail: string };
}

async function send(
  type: string,
  raw: string,
  path = '',
): Promise<{ summary: Record<string, number>; problem?: object; others: Answered[] }> {
  const answer = await api.call('POST', `/api/watches${path}`, {
    raw,
    headers: { 'content-type': type },
  });
  expect(answer.status).toBe(200);
  const lines = answer.text.trimEnd().split('\n');
  const parsed = lines.map((line) => JSON.parse(line));
  return { ...parsed.at(-1), others: parsed.slice(0, -1) as Answered[] };
}

const addr = (n: number) => `0x${String(n).padStart(40, '0')}`;
const wallets = (count: number) =>
  `addr\n${Array.from({ length: count }, (_, n) => addr(n)).join('\n')}`;

async function count(): Promise<{ watches: number; targets: number }> {
  const [row] = await api.database.db.sql<{ watches: number; targets: number }[]>`
    select (select count(*)::int from tallyhook.watches) as watches,
      (select count(*)::int from tallyhook.targets) as targets`;
  return row ?? { watches: -1, targets: -1 };
}

describe('A stream of watches', () => {
  it('Lines of NDJSON are added; refused ones are answered with their number', async () => {
    const raw = [
      JSON.stringify({ kind: 'wallet', addr: ADDR_A }),
      '',
      '{"kind":',
      JSON.stringify({ kind: 'token', contract_id: '1', token_id: '90071992547409930001' }),
      JSON.stringify({ kind: 'wallet', addr: '0x1' }),
      JSON.stringify({ kind: 'wallet', addr: ADDR_A.toLowerCase() }),
      JSON.stringify({ kind: 'contract', contract_id: '5' }),
      JSON.stringify({ kind: 'wallet', addr: 'x'.repeat(5_000) }),
    ].join('\n');
    const { summary, others } = await send(NDJSON, raw);
    expect(summary).toEqual({
      lines: 7,
      added: 3,
      watched: 1,
      refused: 3,
      dry_run: false,
      observation_age_max_ms: expect.any(Number),
    });
    expect(others.map(({ line, problem }) => [line, problem.code, problem.detail])).toEqual([
      [3, 'malformed_json', 'the line is not JSON'],
      [5, 'invalid_request', 'addr: must be 42 printable characters'],
      [8, 'body_too_large', 'the line is longer than 4096 bytes'],
    ]);
    const { data } = (await api.call('GET', '/api/watches')).body;
    expect(data.map((one) => [one.kind, one.addr, one.token_id])).toEqual([
      ['wallet', ADDR_A, null],
      ['token', null, '90071992547409930001'],
      ['contract', null, null],
    ]);
    expect(data[0]?.created_by).toBe('owner of admin');
  });

  it('CSV names its columns in any order, and the filled cells tell the kind', async () => {
    const raw =
      `\ufefftoken_id,addr,contract_id\r\n,${ADDR_A},\r\n7,,1\r\n,,2\r\n` +
      `,"${ADDR_B}",\r\n,,\r\n1,2,3,4\r\n,"x\r\n`;
    const { summary, others } = await send(CSV, raw);
    expect(summary).toMatchObject({ lines: 7, added: 4, watched: 0, refused: 3 });
    expect(others.map(({ line, problem }) => [line, problem.detail])).toEqual([
      [6, expect.stringContaining('contract_id')],
      [7, 'more than 3 cells'],
      [8, 'a quote is not closed'],
    ]);
    const names = await api.database.db.sql`select name from tallyhook.targets order by name`;
    expect(names.map(({ name }) => name)).toEqual([
      'contract:2',
      'token:1:7',
      ...[ADDR_A, ADDR_B].map((one) => `wallet:${one.toLowerCase()}`).sort(),
    ]);
  });

  it.each(['address\n0x1', 'addr,addr\n0x1', `${ADDR_A}`, '"addr\n0x1'])(
    'CSV whose first line does not name the columns is refused as a whole: %j',
    async (raw) => {
      const { summary, problem } = await send(CSV, raw);
      expect(problem).toMatchObject({
        code: 'invalid_request',
        detail: expect.stringContaining('line 1 must name the columns'),
      });
      expect(summary).toMatchObject({ lines: 0, added: 0 });
    },
  );

  it('A repeated stream changes nothing, also if both are sent at once', async () => {
    const raw = wallets(2_500);
    const two = await Promise.all([send(CSV, raw), send(CSV, raw)]);
    const sum = (name: string) => two.reduce((all, { summary }) => all + (summary[name] ?? 0), 0);
    expect({ added: sum('added'), watched: sum('watched') }).toEqual({
      added: 2_500,
      watched: 2_500,
    });
    const before = await count();
    const again = await send(CSV, raw);
    expect(again.summary).toMatchObject({ lines: 2_500, added: 0, watched: 2_500, refused: 0 });
    expect(await count()).toEqual(before);
  });

  it('Progress is answered every ten batches, and the age follows from all', async () => {
    const { summary, others } = await send(CSV, wallets(20_000));
    expect(others).toEqual([
      { progress: { lines: 9_999, added: 9_999, watched: 0, refused: 0 } },
      { progress: { lines: 19_999, added: 19_999, watched: 0, refused: 0 } },
    ]);
    // A fifth of five polls per second.
    expect(summary.observation_age_max_ms).toBe(20_000_000);
  });

  it('The first polls of many targets follow one another, so that others keep their turn', async () => {
    await send(CSV, wallets(1_500));
    const [spread] = await api.database.db.sql<{ s: number }[]>`
      select extract(epoch from max(next_poll_at) - min(next_poll_at))::float as s
      from tallyhook.targets`;
    expect(spread?.s).toBeGreaterThan(1_499 / 5 - 5);
  });

  it('A dry run answers the same as the stream after it, and changes nothing', async () => {
    await send(CSV, wallets(10));
    const raw = `${wallets(1_200)}\n${addr(1_100)}\n0x`;
    const dry = await send(CSV, raw, '?dry_run=true');
    expect(await count()).toEqual({ watches: 10, targets: 10 });
    const real = await send(CSV, raw);
    expect(dry.summary).toMatchObject({ added: 1_190, watched: 11, refused: 1, dry_run: true });
    expect({ ...real.summary, dry_run: true }).toEqual(dry.summary);
    const forOne = await api.call('POST', '/api/watches?dry_run=true', {
      body: { kind: 'wallet', addr: ADDR_A },
    });
    expect(forOne.status).toBe(400);
  });

  it('At most ten thousand refused lines are listed; all are counted', async () => {
    const { summary, others } = await send(CSV, `addr\n${'0x\n'.repeat(10_500)}`);
    expect(summary).toMatchObject({ lines: 10_500, refused: 10_500 });
    expect(others.filter((row) => row.line !== undefined)).toHaveLength(10_000);
  });

  it('A stream is one entry of the audit log, a dry run none', async () => {
    await api.database.owner.sql`delete from tallyhook.audit`;
    await send(CSV, wallets(3));
    await send(CSV, wallets(3), '/remove?dry_run=true');
    const { data } = (await api.call('GET', '/api/audit')).body;
    expect(data).toMatchObject([
      { action: 'POST /api/watches', detail: { format: 'csv' }, result: 'done' },
    ]);
  });
});

describe('A stream of removals', () => {
  it('Ends the watches of its targets, and polls of those that no operation touches', async () => {
    await api.operations.record(aWrite({ fields: { fromAddr: ADDR_B, toAddr: ADDR_B } }));
    await send(CSV, `addr\n${ADDR_A}\n${ADDR_B}\n${addr(1)}`);
    await send(CSV, 'contract_id,token_id\n1,2\n1,', '');
    const raw = `addr,contract_id,token_id\n${ADDR_A}\n${ADDR_B}\n${addr(9)}\n,1,2\n,1,\n,1,2`;
    const dry = await send(CSV, raw, '/remove?dry_run=true');
    expect((await count()).watches).toBe(5);
    const { summary } = await send(CSV, raw, '/remove');
    expect(summary).toMatchObject({ lines: 6, removed: 4, not_watched: 2, refused: 0 });
    expect({ ...summary, dry_run: true, observation_age_max_ms: 0 }).toEqual({
      ...dry.summary,
      observation_age_max_ms: 0,
    });
    const names = await api.database.db.sql`select name from tallyhook.targets order by name`;
    expect(names.map(({ name }) => name)).toEqual([
      `wallet:${addr(1)}`,
      `wallet:${ADDR_B.toLowerCase()}`,
    ]);
  });

  it('Is only taken as lines', async () => {
    const { status } = await api.call('POST', '/api/watches/remove', { body: [] });
    expect(status).toBe(415);
  });
});
