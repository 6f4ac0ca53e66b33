/** `tallyhook drifts` and `tallyhook decisions`, run as processes against a served API. */
import { describe, expect, it } from 'vitest';
import { useServedDrifts } from './served-drifts.ts';

const { rig, as } = useServedDrifts();

describe('tallyhook drifts', () => {
  it('shows a drift in words, with its history and the command of the prepared proposal', async () => {
    const { addr, id } = await rig.drifting(-3n);
    const { code, text } = await as('ann', 'drifts', 'show', id);
    expect(code, text).toBe(0);
    expect(text).toMatch(
      new RegExp(
        `^3 tokens left wallet ${addr} between \\S+Z and \\S+Z; none of our operations explains it`,
      ),
    );
    expect(text).toContain('opened  reconciler');
    expect(text).toContain(`Next: npx tallyhook drifts propose ${id} --proposal book --reason`);
    const json = await as('ann', 'drifts', 'show', id, '--json');
    expect(JSON.parse(json.text)).toMatchObject({ id, amount: '-3' });
  });

  it('assigns, proposes and approves by cause, and tells what was refused', async () => {
    const { id } = await rig.drifting(5n);
    expect((await as('ann', 'drifts', 'assign', id, '--to', 'cleo')).text).toContain('cleo');
    expect((await as('ann', 'drifts', '--assignee', 'cleo')).text).toContain(`${id}  0x`);
    const all = ['--cause', 'made_elsewhere'];
    const proposed = await as('ann', 'drifts', 'propose', ...all, '--reason', 'campaign');
    expect(proposed.text).toContain('book by ann (campaign), approved by no one yet');
    const own = await as('ann', 'drifts', 'approve', ...all);
    expect(own).toMatchObject({ code: 1, text: expect.stringContaining('refused  ann proposed') });
    const approved = await as('bob', 'drifts', 'approve', ...all, '--proposal', 'book');
    expect(approved).toMatchObject({ code: 0, text: expect.stringContaining('approved by bob') });
    const listed = await as('ann', 'drifts', '--state', 'booked', '--json');
    expect(JSON.parse(listed.text).data).toMatchObject([{ state: 'booked' }, { state: 'booked' }]);
    expect((await as('ann', 'drifts')).text).toBe('There is no such drift\n');
    const summary = await as('ann', 'drifts', 'summary');
    expect(summary.text).toMatch(/ended in 30 days: 2, after a median of [\d.]+ s/);
  });

  it.each([
    [['assign', 'drf_1'], '--to'],
    [['propose', '--reason', 'x'], '--cause'],
    [['approve'], '--cause'],
    [['propose', 'drf_1'], '--reason'],
    [['propose', 'drf_1', '--reason', 'x'], 'drf_'],
    [['--cause', 'weather'], 'made_elsewhere'],
  ])('%j fails with one line that names what is missing', async (args, reason) => {
    const { code, text } = await as('ann', 'drifts', ...args);
    expect(code).toBe(1);
    expect(text).toContain(reason);
    expect(text).not.toMatch(/\n\s+at /);
  });
});

it('tallyhook decisions lists undecided operations, and two owners decide one', async () => {
  expect((await as('ann', 'decisions')).text).toBe('No operation is undecided\n');
  const { api } = rig;
  const id = await api.recordLost();
  const at = api.deps.clock.now();
  await api.database.db.begin((tx) =>
    api.operations.move(tx, [{ id, to: 'undecided', at, cause: 'test', evidence: {} }]),
  );
  expect((await as('ann', 'decisions')).text).toMatch(
    new RegExp(`${id}  transfer  undecided  0x\\w+  0x\\w+  100  `),
  );
  const propose = ['decisions', 'propose', id, 'not_executed', '--reason', 'receipt 17'];
  expect((await as('ann', ...propose)).text).toContain('another owner must approve it');
  expect((await as('ann', 'decisions', 'approve', id)).code).toBe(1);
  expect((await as('bob', 'decisions', 'approve', id)).text).toBe(`${id} is not_executed\n`);
});
