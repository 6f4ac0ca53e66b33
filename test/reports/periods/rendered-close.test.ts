/** A rendered report says who closed and signed its period, and what they signed off. */
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makePeriods, type Periods } from '../../../src/reports/reports.ts';
import { addr, DAY, HOUR, makeWorld, START, type World } from '../world.ts';

const ann = { owner: 'ann', keyId: 'key_ann' };
const bob = { owner: 'bob', keyId: 'key_bob' };
let world: World;
let folder: string;
let periods: Periods;

beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'tallyhook-closed-')), 'finance');
  await mkdir(folder);
  world = await makeWorld({ settings: { files: { folder, formats: ['html'] } } });
  const { db, clock, ids, outbox, settings } = world;
  periods = makePeriods({ db, reads: db, clock, ids, outbox, settings });
});
afterEach(async () => {
  await world.drop();
  await rm(join(folder, '..'), { recursive: true });
});

/** Closes the first day with this drift signed off. */
async function closeWith(drift: string): Promise<{ id: string; reportId: string }> {
  world.clock.set(START + DAY + HOUR);
  const signOffs = [{ subject: drift, reason: 'the refund is on its way' }];
  const { closed } = await periods.close(
    { from: { at: START }, to: { at: START + DAY }, signOffs },
    ann,
  );
  if (!closed) throw new Error('the period did not close');
  return closed;
}

const driftOf = async (): Promise<string> => {
  await world.wallet(addr(1), 0n, { observed_balance: 250n });
  return world.drift(addr(1), 250n);
};
const rendered = async (id: string) => String(await world.reports.renderReport(id, 'html'));

it('The report of a closed period has its closer, its signer and each reason', async () => {
  const { id, reportId } = await closeWith(await driftOf());
  const closed = await rendered(reportId);
  expect(closed).toContain('<p class="verdict signed">Balanced with 1 item signed off</p>');
  expect(closed).toContain('Balanced with 1 item signed off'.toLowerCase());
  expect(closed).toMatch(/<dt>Closed by<\/dt><dd>ann, /);
  expect(closed).toContain('<dt>Signed by</dt><dd>no one yet</dd>');
  expect(closed).toContain('the refund is on its way');
  expect(closed).toContain('Prepared by, date');
  await periods.sign(id, bob);
  const signed = await rendered(reportId);
  expect(signed).toMatch(/<dt>Signed by<\/dt><dd>bob, /);
  expect(signed).not.toContain('Prepared by, date');
});

it('The file of a closed period says the same as the page', async () => {
  const { reportId } = await closeWith(await driftOf());
  await world.reports.writeFiles(world.clock.now());
  const [name = ''] = await readdir(folder);
  expect(await readFile(join(folder, name), 'utf8')).toBe(await rendered(reportId));
});

it('A reopened close is called by its breaks, and no longer in force', async () => {
  const { id, reportId } = await closeWith(await driftOf());
  await periods.reopen(id, 'receipt 18 is missing', bob);
  const page = await rendered(reportId);
  expect(page).toMatch(/<p class="verdict breaks">1 break/);
  expect(page.indexOf('no longer in force')).toBeLessThan(page.indexOf('<dt>Period</dt>'));
});
