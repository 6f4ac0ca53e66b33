/** `/api/imports`: what a file becomes, step by step, and who goes on with it. */
import { describe, expect, it } from 'vitest';
import { makeImports, pruneImports } from '../../src/imports/imports.ts';
import { openingId, requestPosting } from '../../src/ledger/ledger.ts';
import { accountOfWallet } from '../../src/operations/operations.ts';
import { useApi } from './rig.ts';
import { ADDR_B, aGive, aTransfer, iso } from './writes.ts';

const api = useApi();
const DAY = 86_400_000;
const TYPE = { 'content-type': 'application/octet-stream' };

type Row = Record<string, unknown>;
const ndjson = (rows: readonly Row[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
const pathOf = (name: string, options: object = {}) =>
  `/api/imports?${new URLSearchParams({ file_name: name, options: JSON.stringify(options) })}`;

async function send(raw: string, more: { name?: string; options?: object; key?: string } = {}) {
  const { name = 'history.ndjson', options, key } = more;
  const call = { raw, headers: TYPE, ...(key === undefined ? {} : { key }) };
  return (await api.call('POST', pathOf(name, options), call)).body;
}
/** All passes of the worker. */
async function work(): Promise<void> {
  await api.postAll();
  while ((await api.imports.runOnce(api.clock.now())) !== undefined);
}
/** Again for what waited for postings. */
async function workOn(): Promise<void> {
  await work();
  await api.postAll();
  while ((await api.imports.runOnce(api.clock.now() + 1_000)) !== undefined);
}
async function checked(rows: readonly Row[]) {
  const { id } = await send(ndjson(rows));
  await work();
  return show(id);
}
const show = async (id: string) => (await api.call('GET', `/api/imports/${id}`)).body;
const rowsOf = async (id: string) =>
  (await api.call('GET', `/api/imports/${id}/rows?limit=500`)).body.data;
const record = (id: string, body: object = {}) =>
  api.call('POST', `/api/imports/${id}/record`, { body });
const countOperations = async () =>
  (await api.db.sql<{ n: number }[]>`select count(*)::int as n from tallyhook.operations`)[0]?.n ??
  0;
const countRows = async () => {
  const [found] = await api.db.sql<{ n: number }[]>`
    select (select count(*) from tallyhook.import_rows)::int
      + (select count(*) from tallyhook.imports)::int as n`;
  return found?.n;
};

async function open(addr: string, balance: bigint, at: number): Promise<void> {
  const request = {
    id: openingId(addr),
    kind: 'opening' as const,
    account: accountOfWallet(addr),
    counter: 'opening',
    amount: balance,
    effectiveAt: at,
    effectiveBasis: 'observed',
    requestedBy: 'reconciler',
    seen: { at, version: 0n },
  };
  await api.db.begin((tx) => requestPosting(tx, request, api.clock.now()));
}

describe('An import', () => {
  it('is checked, and recorded by its last step alone, which a dry run does without', async () => {
    const before = await countOperations();
    const one = await checked([aGive({ reference: 'order 1' }), aGive()]);
    expect(one).toMatchObject({ state: 'ready', lines: 2, to_record: 2, recorded: 0 });
    expect(await countOperations()).toBe(before);
    expect((await record(one.id)).body).toMatchObject({ state: 'checking' });
    await work();
    expect(await show(one.id)).toMatchObject({ state: 'done', recorded: 2, known: 0, refused: 0 });
    const [first] = await rowsOf(one.id);
    expect(first).toMatchObject({ line: 1, result: 'recorded', problem: null });
    const made = await api.call('GET', `/api/operations/${first?.operation_id}`);
    expect(made.body).toMatchObject({
      source: 'report',
      reference: 'order 1',
      evidence: { report: { import: one.id, by: 'owner of admin' } },
    });
  });

  it('judges a row by the rows before it, also by those of earlier batches', async () => {
    const rows = Array.from({ length: 1_100 }, () => aGive());
    const first = rows[0] as Row;
    const hash = `0x${'aB'.repeat(32)}`;
    const burn = { kind: 'burn', occurred_at: iso(api.clock.now()), contract_id: '9' };
    const { id, ...one } = await checked([
      ...rows,
      first,
      { ...first, amount: '11' },
      { ...burn, tx_hash: hash, token_id: '3' },
      { ...burn, tx_hash: hash.toLowerCase(), token_id: '3' },
      { ...burn, tx_hash: hash.toUpperCase().replace('0X', '0x'), token_id: '4' },
    ]);
    expect(one).toMatchObject({ state: 'refused', to_record: 1_101, known: 2, refused: 2 });
    const { body } = await api.call('GET', `/api/imports/${id}/rows?result=refused`);
    expect(body.data).toMatchObject([
      { line: 1_102, problem: { code: 'conflict', detail: expect.stringContaining('amount') } },
      { line: 1_105, problem: { code: 'conflict', detail: expect.stringContaining('token_id') } },
    ]);
    expect((await record(id)).body).toMatchObject({ code: 'conflict' });
  });

  it('takes a row for another write when an earlier row names the operation that it resembles', async () => {
    const fields = {
      fromAddr: null,
      toAddr: ADDR_B,
      operationNo: 1n,
      amount: 77n,
      feeAmount: null,
    };
    const operationId = await api.recordLost({ kind: 'give', fields });
    const alike = { to_addr: ADDR_B, amount: '77', occurred_at: iso(api.clock.now()) };
    const resembling = await checked([aGive(alike)]);
    expect(resembling).toMatchObject({ state: 'refused', refused: 1 });
    const filler = Array.from({ length: 600 }, () => aGive());
    const named = aGive({ ...alike, operation_id: operationId });
    const one = await checked([named, ...filler, aGive(alike)]);
    expect(one).toMatchObject({ state: 'ready', to_record: 602 });
    await record(one.id);
    await work();
    expect(await show(one.id)).toMatchObject({ state: 'done', recorded: 602, refused: 0 });
  });

  it('of one file, its options and its owner is one; one that waits gives way to it', async () => {
    const text = ndjson([aGive(), { kind: 'nonsense' }]);
    const [first, twice] = await Promise.all([send(text), send(text)]);
    expect(first).toMatchObject({ id: twice.id, state: 'checking' });
    expect(await send(text)).toMatchObject({ id: first.id });
    await work();
    expect(await show(first.id)).toMatchObject({ state: 'refused', checked: 2 });
    const again = await send(text);
    expect(again).toMatchObject({ state: 'checking', to_record: 0, refused: 0 });
    expect(await show(first.id)).toMatchObject({ state: 'cancelled', checked: 2 });
    await work();
    expect(await show(again.id)).toMatchObject({ state: 'refused', to_record: 1, refused: 1 });
    const key = await api.keyFor('manage', 'read');
    const others = [await send(text, { options: { time_zone: 'UTC' } }), await send(text, { key })];
    expect(new Set([again.id, ...others.map(({ id }) => id)]).size).toBe(3);
    await work();
    const forbidden = await api.call('POST', `/api/imports/${again.id}/cancel`, { key });
    expect(forbidden.body).toMatchObject({ code: 'forbidden' });
    const ended = await api.call('POST', `/api/imports/${again.id}/cancel`);
    expect(ended.body).toMatchObject({ state: 'cancelled' });
    expect((await send(text)).id).not.toBe(again.id);
    await work();
  });

  it.each([
    ['is cut', 'malformed_json', () => 'broken'],
    ['has no rows', 'invalid_request', () => '\n\n'],
    ['is in another encoding', 'invalid_request', () => `${ndjson([aGive()])}\ufffd`],
  ])('leaves nothing of a file that %s', async (_, code, textOf) => {
    const before = await countRows();
    const text = textOf();
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(Buffer.from(text === 'broken' ? ndjson([aGive()]) : text));
        if (text === 'broken') controller.error(new Error('the connection is lost'));
        else controller.close();
      },
    });
    const key = await api.keyFor('admin');
    const headers = { ...TYPE, authorization: `Bearer ${key}` };
    const request = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
    const response = await api.api.request(pathOf('history.ndjson'), request);
    expect(await response.json()).toMatchObject({ code });
    expect(await countRows()).toBe(before);
  });

  it.each([
    ['the daemon stops', 'shutting_down', () => ({ stop: AbortSignal.timeout(300) })],
    ['its client stalls', 'request_timeout', () => ({ idleMs: 50 })],
  ])('waits for no more of a file when %s', async (_, code, optionsOf) => {
    const before = await countRows();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from(ndjson([aGive()]))),
    });
    const by = { owner: 'an owner', keyId: 'key_1' };
    const file = { fileName: 'a.ndjson', options: {}, body, stop: new AbortController().signal };
    await expect(api.imports.upload({ ...by, ...file, ...optionsOf() })).rejects.toMatchObject({
      code,
    });
    expect(await countRows()).toBe(before);
  });

  it('shows rows with texts that Postgres has no jsonb of, and columns with such names', async () => {
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const { id } = await send(
      `${ndjson([aGive({ reference: 'a\0b', 'x\0y': 1, ['z'.repeat(300)]: 1 })])}` +
        `{"kind":"give","reference":"\\ud800"}\n{"kind":"give","reference":${deep}}\n`,
    );
    await work();
    expect(await show(id)).toMatchObject({
      state: 'refused',
      ignored_columns: ['x\ufffdy', 'z'.repeat(200)],
    });
    const [nul, surrogate, nested] = await rowsOf(id);
    expect(nul).toMatchObject({
      result: 'refused',
      problem: { detail: expect.stringContaining('reference: must not contain NUL') },
      report: { reference: 'a\0b' },
    });
    expect(surrogate).toMatchObject({ report: { reference: '\ud800' } });
    expect(nested).toMatchObject({ report: null, problem: { code: 'malformed_json' } });
  });

  it('that is cancelled while a step records it keeps nothing of that step', async () => {
    const before = await countOperations();
    const one = await checked([aGive(), aGive()]);
    await record(one.id);
    const { report } = api.reportedOperations;
    const reportedOperations: typeof api.reportedOperations = {
      ...api.reportedOperations,
      async report(reports, by, within) {
        await api.call('POST', `/api/imports/${one.id}/cancel`);
        return report(reports, by, within);
      },
    };
    const late = makeImports({ ...api.importDeps, reportedOperations });
    while ((await late.runOnce(api.clock.now())) !== undefined);
    expect(await show(one.id)).toMatchObject({ state: 'cancelled', recorded: 0 });
    expect(await countOperations()).toBe(before);
  });

  it('of two daemons at once is recorded once, row for row', async () => {
    const before = await countOperations();
    const one = await checked(Array.from({ length: 2_000 }, () => aGive()));
    await record(one.id);
    const other = makeImports(api.importDeps);
    // The second one takes the lease of the first for over, as that of a killed daemon.
    const late = api.clock.now() + DAY;
    const passes = async (daemon: typeof other, at: number) => {
      while ((await daemon.runOnce(at)) !== undefined);
    };
    await Promise.all([passes(api.imports, api.clock.now()), passes(other, late)]);
    await work();
    const ended = await show(one.id);
    expect(ended).toMatchObject({ state: 'done', recorded: 2_000, known: 0, refused: 0 });
    expect(await countOperations()).toBe(before + 2_000);
  });

  it('that balances contradict is recorded with a reason, which its operations keep', async () => {
    const addr = `0x${'77'.repeat(20)}`;
    await open(addr, 5n, api.clock.now() - DAY);
    const at = iso(api.clock.now() - 2 * DAY);
    const one = await checked([aGive({ to_addr: addr, amount: '6', occurred_at: at })]);
    expect(one).toMatchObject({
      state: 'ready',
      summary: { wallets: { touched: 1, failed: 1 }, failed: [{ addr, verdict: 'impossible' }] },
    });
    expect((await record(one.id)).body).toMatchObject({ code: 'conflict' });
    expect((await record(one.id, { reason: 'a credit line' })).status).toBe(202);
    await work();
    const [row] = await rowsOf(one.id);
    const made = await api.call('GET', `/api/operations/${row?.operation_id}`);
    expect(made.body).toMatchObject({ evidence: { report: { unproved: 'a credit line' } } });
  });

  it('is checked against what was recorded since, also by another that was ready with it', async () => {
    const addr = `0x${'78'.repeat(20)}`;
    await open(addr, 5n, api.clock.now() - DAY);
    const at = iso(api.clock.now() - 2 * DAY);
    const give = (amount: string) => aGive({ to_addr: addr, amount, occurred_at: at });
    const shared = give('1');
    const both = [await checked([shared, give('2')]), await checked([shared, give('3')])];
    const [first, second] = both.map(({ id }) => id) as [string, string];
    for (const one of both) expect(one).toMatchObject({ state: 'ready', to_record: 2 });
    for (const id of [first, second])
      expect((await record(id)).body).toMatchObject({ state: 'checking', recorded: 0 });
    await work();
    expect(await show(first)).toMatchObject({ state: 'done', recorded: 2 });
    // Its proof waits for the postings of the first one.
    expect(await show(second)).toMatchObject({ state: 'checking', checked: 2 });
    await workOn();
    const contradicted = { touched: 1, proved: 0, unobserved: 0, failed: 1 };
    const failed = [{ addr, verdict: 'impossible', opening: '-1', was: '2' }];
    expect(await show(second)).toMatchObject({
      state: 'ready',
      to_record: 1,
      known: 1,
      recorded: 0,
      summary: { wallets: contradicted, failed },
    });
    expect((await record(second)).body).toMatchObject({ code: 'conflict' });
    await record(second, { reason: 'a credit line' });
    await workOn();
    expect(await show(second)).toMatchObject({
      state: 'done',
      recorded: 1,
      known: 1,
      reason: 'a credit line',
    });
  });

  it('is checked against reports that were recorded since', async () => {
    const addr = `0x${'79'.repeat(20)}`;
    await open(addr, 5n, api.clock.now() - DAY);
    const give = { to_addr: addr, amount: '3', occurred_at: iso(api.clock.now() - 2 * DAY) };
    const one = await checked([aGive(give)]);
    await api.call('POST', '/api/operations', { body: aGive(give) });
    await record(one.id);
    await workOn();
    expect(await show(one.id)).toMatchObject({
      state: 'ready',
      summary: { wallets: { failed: 1 } },
    });
  });

  it('waits for what was due when its rows were checked, and not for what comes later', async () => {
    const report = () => api.call('POST', '/api/operations', { body: aGive() });
    const passes = async () => {
      const later = api.clock.now() + 1_000;
      while ((await api.imports.runOnce(later)) === later);
    };
    await report();
    const { id } = await send(ndjson([aGive()]));
    await passes();
    expect(await show(id)).toMatchObject({ state: 'checking', checked: 1 });
    await api.postAll();
    await report();
    await passes();
    expect(await show(id)).toMatchObject({ state: 'ready' });
    await api.postAll();
  });

  it('has no rows any more a day after it was cancelled, or a month after it was done', async () => {
    const done = await checked([aGive()]);
    await record(done.id);
    await work();
    const idle = await checked([aTransfer({ occurred_at: iso(api.clock.now() - DAY) })]);
    const cancelled = await checked([aGive()]);
    await api.call('POST', `/api/imports/${cancelled.id}/cancel`);
    const pruned = async (days: number) => {
      while ((await pruneImports(api.db, api.clock.now() + days * DAY)) > 0);
    };
    const rowsLeft = async () =>
      Promise.all([done, idle, cancelled].map(async ({ id }) => (await rowsOf(id)).length));
    await pruned(0.9);
    expect(await rowsLeft()).toEqual([1, 1, 1]);
    await pruned(1.1);
    expect(await show(idle.id)).toMatchObject({ state: 'cancelled' });
    expect(await rowsLeft()).toEqual([1, 1, 0]);
    await pruned(2.2);
    expect(await rowsLeft()).toEqual([1, 0, 0]);
    await pruned(31);
    expect(await rowsLeft()).toEqual([0, 0, 0]);
    expect(await show(done.id)).toMatchObject({ state: 'done', recorded: 1 });
  });
});
