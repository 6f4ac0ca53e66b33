/** `tallyhook explain`, as finance and operators run it. */
import { expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { runCommand } from '../harness/command.ts';
import { environmentOf } from '../harness/daemon.ts';
import { freshAddr, openRig } from '../reconciler/rig.ts';

const rig = await openRig();
const addr = await rig.opened(100n);
const between = { from: '', to: '' };
const run = (...args: string[]) =>
  runCommand(environmentOf(rig.database.url, 'http://127.0.0.1:9'), 'explain', ...args);

it('A wallet that a change made elsewhere has touched: movements, observation and a sentence', async () => {
  between.from = isoText(rig.clock.now() - 60_000);
  await rig.accept(await rig.give(addr, 30n));
  await rig.observe(addr, 130n);
  await rig.observeSeries(addr, 123n, 123n);
  between.to = isoText(rig.clock.now() + 60_000);
  const { code, text } = await run(addr, '--from', between.from, '--to', between.to);
  expect(text.replaceAll(/ +/g, ' ')).toMatch(
    new RegExp(
      [
        `^wallet ${addr}, ledger from \\S+ to \\S+`,
        'opening balance unknown',
        'give \\(1\\) 30',
        'opening \\(1\\) 100',
        'closing balance 130',
        'observed 123 at \\S+, where the ledger had 130: drifting',
        `drf_\\S+ open: 7 tokens left wallet ${addr} between \\S+ and \\S+; none of our ` +
          'operations explains it.\n$',
      ].join('\n'),
    ),
  );
  expect(code).toBe(1);
});

it('JSON has the same, with amounts as text', async () => {
  const { code, text } = await run(addr, '--from', between.from, '--to', between.to, '--json');
  expect(code).toBe(1);
  expect(JSON.parse(text)).toMatchObject({
    addr,
    opening: null,
    closing: '130',
    movements: [
      { kind: 'give', entries: 1, up: '30', down: '0' },
      { kind: 'opening', entries: 1, up: '100', down: '0' },
    ],
    observed: { balance: '123', ledger: '130', verdict: 'drifting' },
    drifts: [{ amount: '-7', state: 'open', cause: 'made_elsewhere', closed_at: null }],
  });
});

it('A period after the drift has nothing to add, and a wallet that nobody knows is said to be unknown', async () => {
  const later = isoText(rig.clock.now() + 120_000);
  const { text } = await run(addr, '--from', between.to, '--to', later);
  expect(text.replaceAll(/ +/g, ' ')).toContain('opening balance 130\nclosing balance 130\n');
  const none = await run(freshAddr(), '--from', between.from, '--to', between.to);
  expect(none.code).toBe(0);
  expect(none.text).toContain('never observed\nno drift in this period');
});

it('What came and what went by one kind is one line, with the number of both', async () => {
  const [one, other] = [await rig.opened(100n), await rig.opened(100n)];
  await rig.accept(await rig.transfer(one, other, 5n));
  await rig.accept(await rig.transfer(other, one, 9n));
  await rig.observe(one, 104n);
  const [from, to] = [-3_600_000, 60_000].map((ms) => isoText(rig.clock.now() + ms));
  const { text } = await run(one, '--from', `${from}`, '--to', `${to}`);
  expect(text.match(/^transfer.*/gm)?.map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
    'transfer (2) 9 -5',
  ]);
});

it('A month of the reports is a period, and its begin is named as a day', async () => {
  const month = between.to.slice(0, 7);
  const { text } = await run(addr, '--period', month);
  expect(text).toContain(`ledger from ${month}-01T00:00:00.000Z to `);
  expect(text.match(/^give/gm)).toHaveLength(1);
  const whole = await run(addr, '--from', `${month}-01`, '--period', month);
  expect(whole.text).toContain("'--period <period>' cannot be used with option '--from <begin>'");
});

it.each([
  [['0x12'], '0x12 is not an address'],
  [[addr, '--from', 'yesterday'], 'Expected an RFC 3339 instant, or the begin of a day'],
  [[addr, '--from', '2026-02-01T00:00:00Z', '--to', '2026-01-01T00:00:00Z'], 'must be before'],
])('%s is refused with the reason', async (args, why) => {
  const { code, text } = await run(...args);
  expect([code, text]).toEqual([1, expect.stringContaining(why)]);
});
