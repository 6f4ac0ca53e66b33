/** What a daemon may commit only in a database that it has proved to be the known one. */
import { afterEach, describe, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { type TestDaemon, useOperations } from './rig.ts';

const rig = useOperations();
const sql = () => rig.database.owner.sql;
afterEach(async () => {
  await sql()`delete from tallyhook.daemons`;
});

/** Opens a daemon that cannot prove the database: each time it only learns that time has passed. */
async function openBlind(): Promise<TestDaemon & { proofs: () => number }> {
  let proofs = 0;
  const prove = async () => {
    proofs++;
    rig.clock.advance(11_000);
  };
  return { ...(await rig.open({ prove })), proofs: () => proofs };
}

/** Why a daemon must prove it again. */
const REASONS: Record<string, (daemon: TestDaemon) => Promise<unknown>> = {
  'it no longer counts as alive': ({ id }) =>
    sql()`update tallyhook.daemons set alive_until = ${isoText(rig.clock.now())} where id = ${id}`,
  'the server has started again': ({ id }) =>
    sql()`update tallyhook.daemons set server_start = now() where id = ${id}`,
  'the database was made again from a copy': ({ id }) =>
    sql()`update tallyhook.daemons set data_file = 'base/1/1' where id = ${id}`,
  'another daemon that may send has yet to prove it': async () => {
    const { id } = await rig.open();
    await sql()`update tallyhook.daemons set server_start = now() where id = ${id}`;
  },
  'its registration is missing': ({ id }) => sql()`delete from tallyhook.daemons where id = ${id}`,
  'its last send is missing': ({ id }) =>
    rig.database.owner.begin(async (tx) => {
      await tx.sql`alter table tallyhook.transitions disable trigger transitions_append_only`;
      await tx.sql`delete from tallyhook.transitions where daemon_id = ${id}`;
      await tx.sql`
        alter table tallyhook.transitions enable always trigger transitions_append_only`;
    }),
};

/** What it may not do then, with a write that it has sent, a queued one and one that expires. */
const ACTS: Record<string, (daemon: TestDaemon, ids: Writes) => Promise<unknown>> = {
  'records no intent': (daemon) => rig.record({}, daemon),
  'claims no queued write': (daemon) => rig.claim(100, daemon),
  'records no resend': ({ operations }, { sent }) =>
    operations.recordResend(sent, 'unauthorized', rig.clock.now() + 25_000),
  'cancels no queued write': ({ operations }, { queued }) =>
    operations.cancel(queued, { owner: 'app', admin: false }),
  'calls no queued write expired': ({ operations }) =>
    operations.runOnce(rig.clock.now() + EXPIRES_MS),
};
type Writes = Record<'sent' | 'queued', string>;
const EXPIRES_MS = 20_000;

const CASES = Object.keys(REASONS).flatMap((why) => Object.keys(ACTS).map((act) => ({ why, act })));

describe('A daemon that cannot prove its database', () => {
  it.each(CASES)('When $why, a daemon $act', async ({ why, act }) => {
    const daemon = await openBlind();
    const sent = await rig.record({}, daemon);
    const queued = await rig.queue({}, daemon);
    await rig.queue({ expiresAt: rig.clock.now() + EXPIRES_MS }, daemon);
    expect(daemon.proofs()).toBe(0);
    await REASONS[why]?.(daemon);
    const doing = ACTS[act]?.(daemon, { sent, queued });
    await expect(doing).rejects.toMatchObject({ code: 'database_unproved' });
    expect(daemon.proofs()).toBe(1);
  });
});

it.each(['it no longer counts as alive', 'the server has started again'])(
  'When %s, a daemon proves the database and goes on',
  async (why) => {
    const daemon = await rig.open();
    await rig.record({}, daemon);
    await REASONS[why]?.(daemon);
    await rig.record({}, daemon);
  },
);

it('A daemon without the role of the gateway, which sends nothing, is not waited for', async () => {
  const { id } = await rig.open();
  await sql()`update tallyhook.daemons set server_start = now(), roles = '{api,workers}'
    where id = ${id}`;
  await rig.record();
});

it('A daemon that is dead is not waited for', async () => {
  const { id } = await rig.open();
  await sql()`update tallyhook.daemons set server_start = now(),
    alive_until = ${isoText(rig.clock.now())} where id = ${id}`;
  await rig.record();
});
