/** Many reported operations at once: as an array, and as a stream of lines. */
import { describe, expect, it } from 'vitest';
import { accountOfWallet } from '../../src/operations/operations.ts';
import { balancesOf } from '../harness/books.ts';
import { until } from '../harness/until.ts';
import { useApi } from './rig.ts';
import { aGive } from './writes.ts';

const NDJSON = { 'content-type': 'application/x-ndjson' };
const api = useApi();

const report = (body: unknown) => api.call('POST', '/api/operations', { body });
const lines = async (raw: string) => {
  const answer = await api.call('POST', '/api/operations', { raw, headers: NDJSON });
  expect(answer.status).toBe(200);
  return answer.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
};

describe('Many reports', () => {
  it('The reports of an array are checked one by one and counted', async () => {
    const known = aGive();
    await report(known);
    const twice = aGive();
    const { status, body } = await report([
      aGive(),
      known,
      twice,
      twice,
      { ...twice, amount: '11' },
      { kind: 'give' },
      7,
    ]);
    expect(status).toBe(200);
    expect(body).toMatchObject({ recorded: 2, known: 2, refused: 3 });
    expect(body.data.map(({ result }) => result)).toEqual([
      'recorded',
      'known',
      'recorded',
      'known',
      'refused',
      'refused',
      'refused',
    ]);
    expect(body.data[3]?.operation_id).toBe(body.data[2]?.operation_id);
    expect(body.data[4]?.problem).toMatchObject({ code: 'conflict' });
  });

  it('An array above 1 MiB is refused, and the same reports are taken as lines', async () => {
    const reports = Array.from({ length: 150 }, () => aGive({ reason_type: 'x'.repeat(8_000) }));
    const { status, body } = await report(reports);
    expect({ status, code: body.code }).toEqual({ status: 413, code: 'body_too_large' });
    const answered = await lines(reports.map((one) => JSON.stringify(one)).join('\n'));
    expect(answered.at(-1)).toMatchObject({ summary: { lines: 150 } });
  });

  it('Lines are answered line by line, with a summary at the end', async () => {
    const good = aGive();
    const raw = [
      JSON.stringify(good),
      '',
      '{"kind":',
      JSON.stringify(aGive({ reason_type: 'x'.repeat(70_000) })),
      JSON.stringify({ ...good, amount: '12' }),
      `${JSON.stringify(good)}\r`,
    ].join('\n');
    const answered = await lines(raw);
    expect(answered.map(({ line, result, problem }) => [line, result, problem?.code])).toEqual([
      [1, 'recorded', undefined],
      [3, 'refused', 'malformed_json'],
      [4, 'refused', 'body_too_large'],
      [5, 'refused', 'conflict'],
      [6, 'known', undefined],
      [undefined, undefined, undefined],
    ]);
    expect(answered.at(-1)).toEqual({ summary: { lines: 5, recorded: 1, known: 1, refused: 3 } });
  });

  it('Thousands of reports are recorded once, even if sent repeatedly and concurrently', async () => {
    const wallets = Array.from({ length: 40 }, (_, n) => `0x${String(n).padStart(40, '0')}`);
    const rows = Array.from({ length: 2_000 }, (_, n) =>
      JSON.stringify(aGive({ to_addr: wallets[n % 40], amount: String(n + 1) })),
    );
    const [a, b] = await Promise.all([lines(rows.join('\n')), lines(rows.toReversed().join('\n'))]);
    const again = await lines(rows.join('\n'));
    expect((a.at(-1).summary.recorded ?? 0) + (b.at(-1).summary.recorded ?? 0)).toBe(2_000);
    expect(again.at(-1)).toEqual({
      summary: { lines: 2_000, recorded: 0, known: 2_000, refused: 0 },
    });
    const ids = new Set([...a, ...b, ...again].flatMap((row) => row.operation_id ?? []));
    expect(ids.size).toBe(2_000);
    await api.postAll();
    const found = await balancesOf(api.database.db, wallets.map(accountOfWallet));
    const sum = [...found.values()].reduce((total, { balance }) => total + balance, 0n);
    expect(sum).toBe((2_000n * 2_001n) / 2n);
  });

  it('Another content type is refused', async () => {
    const headers = { 'content-type': 'text/csv' };
    const { status, body } = await api.call('POST', '/api/operations', { raw: 'a,b', headers });
    expect({ status, code: body.code }).toEqual({ status: 415, code: 'unsupported_media_type' });
  });
});

describe('Streams of reports', () => {
  /** A request whose body goes on until it is ended or broken. */
  async function opened() {
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start(created) {
        controller = created;
        created.enqueue(Buffer.from(`${JSON.stringify(aGive())}\n`));
      },
    });
    const authorization = `Bearer ${await api.keyFor('admin')}`;
    const request = { method: 'POST', headers: { ...NDJSON, authorization }, body, duplex: 'half' };
    const answer = await api.api.request('/api/operations', request as RequestInit);
    const rest = async () =>
      (await answer.text())
        .trimEnd()
        .split('\n')
        .map((l) => JSON.parse(l));
    return { answer, rest, end: () => controller?.close(), fail: () => controller?.error('reset') };
  }

  /** Whether one more stream is taken; one that ends closes its audit entry first. */
  const isFree = async () => {
    const { status } = await api.call('POST', '/api/operations', { raw: '', headers: NDJSON });
    return status === 200 || undefined;
  };

  it('A third concurrent stream is refused until one ends', async () => {
    const [a, b] = [await opened(), await opened()];
    const refused = await api.call('POST', '/api/operations', { raw: '{}', headers: NDJSON });
    expect({ status: refused.status, code: refused.body.code }).toEqual({
      status: 429,
      code: 'too_many_requests',
    });
    a.end();
    b.fail();
    expect((await a.rest()).at(-1)).toEqual({
      summary: { lines: 1, recorded: 1, known: 0, refused: 0 },
    });
    expect((await b.rest()).at(-1).problem).toMatchObject({ code: 'malformed_json' });
    expect((await lines('')).at(-1).summary.lines).toBe(0);
  });

  it('A stream ends when its client disconnects', async () => {
    for (let n = 0; n < 3; n++) {
      const { answer, end } = await opened();
      await answer.body?.cancel();
      end();
      expect(await until(isFree)).toBe(true);
    }
    expect((await lines('')).at(-1).summary.lines).toBe(0);
  });

  it('Streams end when the daemon stops, and say so', async () => {
    const one = await opened();
    api.stopping.abort();
    one.end();
    expect(await one.rest()).toEqual([
      {
        summary: { lines: 0, recorded: 0, known: 0, refused: 0 },
        problem: expect.objectContaining({ code: 'shutting_down' }),
      },
    ]);
  });
});
