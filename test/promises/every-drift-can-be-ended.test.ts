/**
 * Promise 5 to its end. Changes made elsewhere become drifts; one owner proposes how each ends,
 * another approves, and then ledger and service agree: the report says balanced. A daemon that is
 * killed between the approval and the posting loses nothing.
 */
import { expect, it } from 'vitest';
import { isoText, systemClock } from '../../src/kernel/clock.ts';
import { type App, makeApp } from '../harness/app.ts';
import { runCommand } from '../harness/command.ts';
import { useRig } from '../harness/rig.ts';

const rig = useRig();
const begun = systemClock.now();

/** An app of a new owner, and the environment of its commands. */
async function personOf(owner: string): Promise<{ app: App; run: (...args: string[]) => Run }> {
  const body = { name: owner, owner, scopes: ['read', 'decide'] };
  const { key } = (await rig.app.call('POST', '/api/keys', body)).json;
  return {
    app: makeApp(() => rig.daemon.url, key),
    run: (...args) =>
      runCommand({ TALLYHOOK_URL: rig.daemon.url, TALLYHOOK_KEY: key }, 'drifts', ...args),
  };
}
type Run = ReturnType<typeof runCommand>;

/** The breaks of a report over the time of the test. */
async function breaks(): Promise<string[]> {
  const period = { from: isoText(begun - 1_000), to: isoText(systemClock.now() + 60_000) };
  const made = await rig.app.call('POST', '/api/reports', { kind: 'reconciliation', ...period });
  const { json } = await rig.app.call('GET', `/api/reports/${made.json.id}`);
  return json.content.breaks.listed.map(
    ({ kind, amount }: { kind: string; amount: string }) => `${kind} ${amount}`,
  );
}

/** Changes a wallet elsewhere; answers its drift. */
async function changed(addr: string, delta: bigint): Promise<string> {
  rig.world.sandbox.control.setWallet(addr, { delta });
  const opened = await rig.app.until(
    (e) => e.type === 'wallet.drift_opened' && e.data.addr === addr && e.data.amount === `${delta}`,
  );
  return opened.data.drift_id;
}

const postings = () =>
  rig.world.database.owner.sql<{ account: string; amount: bigint }[]>`
    select account, amount from finance_v1.journal where kind = 'booking' order by seq`;

it('After all drifts are ended by two owners, the report says balanced', async () => {
  const { ada, ben, database } = rig.world;
  await rig.observe(ada, ben);
  await rig.eventOf(await rig.app.give(ada, 100), 'operation.settled');
  await expect.poll(breaks).toEqual([]);
  const [ann, bob] = [await personOf('ann'), await personOf('bob')];
  const drifts = [await changed(ada, 7n), await changed(ada, -20n), await changed(ben, 3n)];
  expect((await breaks()).toSorted()).toEqual(['drift_open -20', 'drift_open 3', 'drift_open 7']);

  const proposed = await ann.run('propose', ...drifts, '--reason', 'paid in cash', '--json');
  expect(proposed.code, proposed.text).toBe(0);
  const own = await ann.run('approve', ...drifts);
  expect(own).toMatchObject({ code: 1, text: expect.stringContaining('another owner approves') });
  const [last = '', ...others] = drifts.toReversed();
  expect((await bob.run('approve', ...others)).code).toBe(0);
  await expect.poll(breaks).toEqual(['drift_open 3']);
  await expect.poll(postings).toHaveLength(2 * others.length);

  // The ledger waits for this lock, so the daemon dies after the approval and before the posting.
  const before = await postings();
  await database.owner.begin(async ({ sql }) => {
    await sql`lock table tallyhook.batches in exclusive mode`;
    expect((await bob.app.call('POST', `/api/drifts/${last}/approve`, {})).status).toBe(200);
    await rig.daemon.kill();
  });
  expect(await postings()).toEqual(before);
  await rig.restart();
  await expect
    .poll(postings)
    .toEqual([
      ...before,
      { account: `wallet:${ben}`, amount: 3n },
      { account: 'external', amount: -3n },
    ]);
  await expect.poll(breaks).toEqual([]);
  const listed = await bob.run('list', '--state', 'booked', '--json');
  expect(JSON.parse(listed.text).data).toHaveLength(drifts.length);
  expect((await bob.run('list')).text).toBe('There is no such drift\n');
});
