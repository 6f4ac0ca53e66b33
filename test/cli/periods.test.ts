/** `tallyhook periods`, run as a process against a served API. */
import { expect, it } from 'vitest';
import { isoText, systemClock } from '../../src/kernel/clock.ts';
import { useServedDrifts } from './served-drifts.ts';

const { rig, as: asOwner } = useServedDrifts();
const as = (owner: 'ann' | 'bob', ...args: string[]) => asOwner(owner, 'periods', ...args);
const jsonOf = (text: string) => JSON.parse(text);

it('tallyhook periods prints what prevents a close, closes, signs, reopens and lists', async () => {
  expect((await as('ann')).text).toBe('No period is closed\n');
  const from = isoText(systemClock.now() - 3_600_000);
  const { id: drift } = await rig.drifting(5n);
  const to = isoText(systemClock.now());
  const span = ['--from', from, '--to', to];
  const dry = await as('ann', 'close', ...span, '--dry-run');
  expect(dry.code, dry.text).toBe(1);
  expect(dry.text).toContain(`${from} to ${to} does not close, because of:`);
  expect(dry.text).toMatch(
    new RegExp(`^ {2}drift_open {2}${drift} {2}5 {2}See what is known`, 'm'),
  );
  const refused = await as('ann', 'close', ...span);
  expect(refused).toMatchObject({ code: 1, text: expect.stringContaining(`drift_open ${drift}`) });
  const signOff = ['--sign-off', `drf_0=x`, `${drift}=refund = on its way`];
  expect((await as('ann', 'close', ...span, ...signOff)).text).toContain('no_such_item drf_0');
  const accepted = ['--sign-off', `${drift}=refund = on its way`];
  const ready = await as('ann', 'close', ...span, ...accepted, '--dry-run');
  expect(ready).toEqual({ code: 0, text: `${from} to ${to} can be closed\n` });
  const closed = await as('ann', 'close', ...span, ...accepted, '--json');
  const { period } = jsonOf(closed.text);
  expect(period.sign_offs).toMatchObject([{ subject: drift, reason: 'refund = on its way' }]);
  expect(await as('ann', 'sign', period.id)).toMatchObject({
    code: 1,
    text: expect.stringContaining('409 same_owner'),
  });
  expect((await as('bob', 'sign', period.id)).text).toContain('signed by bob');
  const listed = await as('bob', 'list');
  expect(listed.text).toBe(
    `${period.id}  ${from} to ${to}  signed  ${period.report_id}  ` +
      `closed by ann, 1 signed off, signed by bob\nOpen since ${to}\n`,
  );
  const proposed = await as('ann', 'reopen', period.id, '--reason', 'receipt 17');
  const waits = 'signed by bob, reopening proposed by ann as proposal 2 (receipt 17)\n';
  expect(proposed.text).toContain(waits);
  const approve = (owner: 'ann' | 'bob', n: string) =>
    as(owner, 'approve', period.id, '--proposal', n);
  expect((await approve('ann', '2')).text).toContain('409 same_owner');
  expect((await approve('bob', '1')).text).toContain('409 conflict');
  const reopened = await approve('bob', '2');
  expect(reopened.text).toContain('as proposal 2, reopened by bob (receipt 17)\n');
  expect(jsonOf((await as('ann', '--json')).text).data).toMatchObject([{ state: 'reopened' }]);
});

it.each([
  [['close'], 'name either period, or to'],
  [['close', '--to', 'yesterday'], 'Expected an RFC 3339 instant, or the begin of a day, month'],
  [['close', '--period', '2026-13'], 'Expected a day, month, quarter or year of the reports'],
  [['close', '--to', '2026-01-01', '--sign-off', 'drf_1'], '<subject>=<reason>'],
  [['reopen', 'per_1'], '--reason'],
  [['approve', 'per_1'], '--proposal'],
  [['approve', 'per_1', '--proposal', 'x'], 'must be a whole number'],
  [['sign', 'per_1'], 'not_found'],
])('%j fails with one line that names what is wrong', async (args, reason) => {
  const { code, text } = await as('ann', ...args);
  expect(code).toBe(1);
  expect(text).toContain(reason);
  expect(text).not.toMatch(/\n\s+at /);
});
