/** `tallyhook import`, run as a process against a served API. */
import { describe, expect, it } from 'vitest';
import { openingAmounts } from '../../../src/ledger/ledger.ts';
import { accountOfWallet } from '../../../src/operations/operations.ts';
import { aGive, aTransfer } from '../../api/writes.ts';
import { until } from '../../harness/until.ts';
import { useImports } from './rig.ts';

const rig = useImports();
const addr = (n: number) => `0x${String(n).padStart(40, '0')}`;
const DAY = 86_400_000;
const OPENED = Date.UTC(2026, 0, 10);
const iso = (days: number) => new Date(OPENED + days * DAY).toISOString();

describe('tallyhook import', () => {
  it('maps columns, shows what it would record and its proof, records it once', async () => {
    const wallet = addr(1);
    await rig.open(wallet, 70n, OPENED);
    await rig.post();
    await rig.write('app.csv', [
      'type,when,log_id,to_addr,value,comment',
      `payout,2026-01-01 09:00:00,1,${wallet},10,"first, of all"`,
      `payout,2026-01-02 09:00:00,2,${wallet},20,`,
    ]);
    await rig.write('mapping.json', [
      { values: { kind: { payout: 'give' } }, time_zone: 'Asia/Seoul' },
    ]);
    const mapped = [
      'app.csv',
      '--mapping',
      'mapping.json',
      '--set',
      'tx_app_no=7,operation_no=1',
      '--map',
      'kind=type,occurred_at=when',
      '--map',
      'tx_log_no=log_id,amount=value',
    ];
    const dry = await rig.run(...mapped, '--dry-run');
    expect(dry).toEqual({
      code: 0,
      err: '',
      out: [
        '2 lines: 2 to record, 0 known, 0 refused',
        'Ignored columns: comment',
        'From 2026-01-01T00:00:00.000Z to 2026-01-02T00:00:00.000Z: 2 give',
        '  operator:1: 2 movements, in 0, out 30',
        `  wallet:${wallet}: 2 movements, in 30, out 0`,
        'Balance proof: 1 wallets: 1 proved, 0 failed, 0 not observed',
        '',
      ].join('\n'),
    });
    expect(await rig.countOperations()).toBe(0);
    const first = await rig.run(...mapped);
    expect(first.out).toContain('Imported: 2 recorded, 0 known, 0 refused');
    await rig.post();
    const again = await rig.run(...mapped, '--json');
    expect(JSON.parse(again.out)).toMatchObject({
      lines: 2,
      to_record: 0,
      known: 2,
      refused: 0,
      period: null,
      failed: [],
      imported: { recorded: 0, known: 2, refused: 0 },
    });
    expect(await rig.countOperations()).toBe(2);
    const account = accountOfWallet(wallet);
    expect(await openingAmounts(rig.api.db, [account])).toEqual(new Map([[account, 40n]]));
  });

  it('names each refused line with a code, and records nothing', async () => {
    const before = await rig.countOperations();
    const good = aGive();
    await rig.write('bad.ndjson', [
      good,
      '{"kind":',
      { ...good, amount: '11' },
      good,
      aGive({ occurred_at: '2026-01-01 09:00:00' }),
      aGive({ amount: '-1' }),
      aGive({ tx_log_no: '' }),
    ]);
    const { code, out, err } = await rig.run('bad.ndjson');
    expect(code).toBe(1);
    expect(out).toContain('7 lines: 1 to record, 1 known, 5 refused');
    expect(err.trim().split('\n')).toEqual([
      'line 2: malformed_json: the line is no JSON object',
      expect.stringMatching(/^line 3: conflict: an earlier line names the same transaction/),
      expect.stringMatching(/^line 5: time_without_zone: .*--time-zone/),
      expect.stringMatching(/^line 6: invalid_request: amount: must be a whole number/),
      expect.stringMatching(/^line 7: invalid_request: tx_log_no: /),
      'Nothing was recorded: mend or remove the 5 refused lines, and repeat',
    ]);
    const listed = JSON.parse((await rig.run('bad.ndjson', '--dry-run', '--json')).out);
    expect(
      listed.errors.map((one: { line: number; code: string }) => [one.line, one.code]),
    ).toEqual([
      [2, 'malformed_json'] as const,
      [3, 'conflict'] as const,
      [5, 'time_without_zone'] as const,
      [6, 'invalid_request'] as const,
      [7, 'invalid_request'],
    ]);
    expect(await rig.countOperations()).toBe(before);
  });

  it('refuses an impossible history unless a reason is given, which is stored', async () => {
    const before = await rig.countOperations();
    const [a, b] = [addr(11), addr(12)];
    for (const wallet of [a, b]) await rig.open(wallet, 50n, OPENED);
    await rig.post();
    await rig.write('impossible.ndjson', [
      aGive({ to_addr: a, amount: '30', occurred_at: iso(-3) }),
      aTransfer({ from_addr: a, to_addr: b, amount: '60', fee_amount: '0', occurred_at: iso(-2) }),
    ]);
    const refused = await rig.run('impossible.ndjson');
    expect(refused.code).toBe(1);
    expect(refused.out).toContain(
      `${b}: impossible: its opening becomes -10 instead of 50, and from line 2 ` +
        `(${iso(-2)}) on its balance is -10`,
    );
    expect(refused.out).toContain('2 wallets: 1 proved, 1 failed, 0 not observed');
    expect(refused.err).toContain('--accept-unproved');
    expect(await rig.countOperations()).toBe(before);
    const reason = 'b had a credit line, ticket 17';
    const accepted = await rig.run('impossible.ndjson', '--accept-unproved', reason);
    expect(accepted).toMatchObject({ code: 0, err: '' });
    const { body } = await rig.api.call('GET', `/api/operations?limit=1`);
    const made = await rig.api.call('GET', `/api/operations/${body.data[0]?.id}`);
    expect(made.body.evidence).toMatchObject({ report: { unproved: reason } });
    const audit = await rig.api.call('GET', '/api/audit?limit=1');
    expect(audit.body.data[0]).toMatchObject({ detail: { reason } });
  });

  it('counts earlier imports, so that the second half of a history can be impossible', async () => {
    const wallet = addr(21);
    await rig.open(wallet, 0n, OPENED);
    await rig.post();
    const paid = { from_addr: wallet, to_addr: addr(22), fee_amount: '0' };
    await rig.write('out.ndjson', [aTransfer({ ...paid, amount: '40', occurred_at: iso(-1) })]);
    expect((await rig.run('out.ndjson')).code).toBe(0);
    await rig.post();
    await rig.write('in.ndjson', [aGive({ to_addr: wallet, amount: '40', occurred_at: iso(-2) })]);
    const fits = await rig.run('in.ndjson', '--dry-run');
    expect(fits).toMatchObject({ code: 0, err: '' });
    await rig.write('more.ndjson', [
      aGive({ to_addr: wallet, amount: '41', occurred_at: iso(-2) }),
    ]);
    expect((await rig.run('more.ndjson', '--dry-run')).out).toContain(
      `${wallet}: impossible: its opening becomes -1 instead of 40`,
    );
  });

  it('goes on in the daemon when the command is killed, and the same command continues it', async () => {
    const before = await rig.countOperations();
    const wallet = addr(31);
    await rig.open(wallet, 10_000n, OPENED);
    await rig.post();
    await rig.write(
      'long.ndjson',
      Array.from({ length: 3_000 }, (_, n) =>
        aGive({ to_addr: wallet, amount: '1', occurred_at: iso(-1 - n / 1000) }),
      ),
    );
    const child = rig.start('long.ndjson');
    const ended = new Promise((resolve) => child.once('close', resolve));
    await until(async () => ((await rig.countOperations()) > before ? true : undefined));
    child.kill('SIGKILL');
    await ended;
    // Posting goes on, as in a daemon.
    const repeated = rig.run('long.ndjson', '--json');
    await until(async () => {
      await rig.post();
      return Promise.race([repeated, undefined]);
    });
    const { code, out, err } = await repeated;
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const { recorded, known, refused } = JSON.parse(out).imported;
    expect({ refused, total: recorded + known }).toEqual({ refused: 0, total: 3_000 });
    expect(await rig.countOperations()).toBe(before + 3_000);
  });

  it.each([
    ['--map', 'sum=value', 'sum is no field'],
    ['--delimiter', ';', 'missing columns'],
    ['--encoding', 'klingon', 'klingon is not known'],
  ])('shows why a long file is refused for %s %s', async (name, value, text) => {
    const filler = 'x'.repeat(1_000);
    const rows = Array.from({ length: 20_000 }, () => `give,${filler}`);
    await rig.write('wide.csv', ['kind,occurred_at', ...rows]);
    const { code, err } = await rig.run('wide.csv', name, value);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(text) });
  });

  it.each([
    [['missing.csv'], 'is no file that can be read'],
    [['app.csv', '--key', 'thk_wrong'], '401'],
    [['mapping.json'], 'name its --format'],
    [['app.csv', '--mapping', 'app.csv'], 'is not of the form'],
    [['app.csv', '--set', 'kind'], 'write field=value'],
    [['app.csv', '--delimiter', 'x'], 'must be one of'],
  ])('refuses %j with an explanation', async (args, text) => {
    const { code, err } = await rig.run(...args);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(text) });
  });
});
