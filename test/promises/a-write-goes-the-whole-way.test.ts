/**
 * Promises 1 and 6, along one write of each kind: recorded, sent, answered, posted, told,
 * confirmed. The receiver checks every webhook with the `standardwebhooks` library.
 */
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type App, makeApp } from '../harness/app.ts';
import { createWorld, type DaemonProcess, startDaemon, type World } from '../harness/daemon.ts';
import { type Receiver, startReceiver } from '../harness/receiver.ts';

let world: World;
let daemon: DaemonProcess;
let receiver: Receiver;
let app: App;
let webhook: Webhook;

beforeAll(async () => {
  world = await createWorld();
  daemon = await startDaemon(world);
  receiver = await startReceiver();
  app = makeApp(() => daemon.url);
  const made = await app.call('POST', '/api/endpoints', {
    url: `${receiver.url}/hook`,
    event_types: ['*'],
  });
  expect(made.status).toBe(201);
  webhook = new Webhook(made.json.secret);
  const watched = [world.ada, world.ben].map((addr) => ({ kind: 'wallet', addr }));
  expect((await app.call('POST', '/api/watches', watched)).status).toBe(201);
});

afterAll(async () => {
  await daemon?.stop();
  await receiver?.close();
  await world?.close();
});

const operationOf = (answer: { headers: Record<string, unknown> }) =>
  String(answer.headers['tallyhook-operation']);

describe('a give', () => {
  it('is answered with the bytes of the service, posted, told and confirmed', async () => {
    const answer = await app.give(world.ada, 100, { 'tallyhook-reference': 'order 17' });
    expect(answer.status).toBe(200);
    const [effect] = world.sandbox.control.effects().slice(-1);
    expect(answer.text).toBe(
      JSON.stringify({
        status: 200,
        data: { tx_app_no: 101, tx_log_no: Number(effect?.tx_log_no) },
      }),
    );
    const id = operationOf(answer);
    const settled = await app.until(
      (e) => e.type === 'operation.settled' && e.data.operation_id === id,
    );
    expect(settled.data).toMatchObject({
      kind: 'give',
      amount: '100',
      reference: 'order 17',
      outcome: 'executed',
    });

    const operation = await app.call('GET', `/api/operations/${id}`);
    const states = operation.json.transitions.map((t: { to_state: string }) => t.to_state);
    expect(states).toEqual(['recorded', 'sending', 'accepted', 'settled']);

    const [entry] = await world.database.owner.sql<{ amount: bigint }[]>`
      select amount from finance_v1.journal
      where operation_id = ${id} and account = ${`wallet:${world.ada}`}`;
    expect(entry?.amount).toBe(100n);

    const accepted = await app.until(
      (e) => e.type === 'operation.accepted' && e.data.operation_id === id,
    );
    const delivered = await receivedById(accepted.id);
    expect(webhook.verify(delivered.body, delivered.headers as Record<string, string>)).toEqual(
      accepted,
    );
  });
});

/** Waits until the receiver has the event of that id; requests are looked through as they come. */
async function receivedById(id: string) {
  for (let seen = 0; ; seen++) {
    const found = receiver.requests.find((r) => r.headers['webhook-id'] === id);
    if (found) return found;
    await receiver.count(Math.max(receiver.requests.length, seen) + 1, 10_000);
  }
}

describe('the other token writes', () => {
  it('a transfer with a fee moves three accounts that sum to zero, and settles', async () => {
    const answer = await app.transfer(world.ada, world.ben, 20);
    const id = operationOf(answer);
    await app.until((e) => e.type === 'operation.settled' && e.data.operation_id === id);
    const rows = await world.database.owner.sql<{ account: string; amount: bigint }[]>`
      select account, amount from finance_v1.journal where operation_id = ${id} order by account`;
    expect(rows.map((r) => [r.account, r.amount])).toEqual(
      [
        ['fees', 1n],
        [`wallet:${world.ada}`, -21n],
        [`wallet:${world.ben}`, 20n],
      ].sort((a, b) => String(a[0]).localeCompare(String(b[0]))),
    );
  });

  it('a receive-from settles against the wallet it takes from', async () => {
    const id = operationOf(await app.receiveFrom(world.ada, 5));
    await app.until((e) => e.type === 'operation.settled' && e.data.operation_id === id);
  });

  it('a refused write is answered as the service refuses it and moves nothing', async () => {
    const answer = await app.transfer(world.ada, world.ben, 10n ** 30n);
    expect(answer.status).toBe(406);
    expect(answer.json.error.code).toBe('198');
    const id = operationOf(answer);
    const event = await app.until(
      (e) => e.type === 'operation.rejected' && e.data.operation_id === id,
    );
    expect(event.data.error).toMatchObject({ class: 'refused', code: '198' });
    const posted = await world.database.owner.sql`
      select 1 as one from finance_v1.journal where operation_id = ${id}`;
    expect(posted).toHaveLength(0);
  });
});

describe('a mint', () => {
  it('is pending, then settled when the chain completes its hash', async () => {
    const tokenId = 9007199254740993n;
    const id = operationOf(await app.mint(world.ada, tokenId));
    const minted = await app.until((e) => e.type === 'token.minted' && e.data.cause === id);
    expect(minted.data.token_id).toBe('9007199254740993');
    const settled = await app.until(
      (e) => e.type === 'operation.settled' && e.data.operation_id === id,
    );
    expect(settled.data.tx_hash).toHaveLength(66);
  });

  it('fails when the chain fails its hash', async () => {
    world.sandbox.control.failNext(1);
    const id = operationOf(await app.mint(world.ada, 777));
    const failed = await app.until(
      (e) => e.type === 'operation.failed' && e.data.operation_id === id,
    );
    expect(failed.data.outcome).toBe('not_executed');
  });
});

describe('a wallet changed elsewhere', () => {
  it('is a drift after two looks, named with its amount, and closed when it returns', async () => {
    world.sandbox.control.setWallet(world.ben, { delta: 7n });
    const opened = await app.until((e) => e.type === 'wallet.drift_opened');
    expect(opened.data).toMatchObject({ addr: world.ben, amount: '7' });
    world.sandbox.control.setWallet(world.ben, { delta: -7n });
    const closed = await app.until((e) => e.type === 'wallet.drift_closed');
    expect(closed.data).toMatchObject({ drift_id: opened.data.drift_id, how: 'returned' });
  });
});

describe('every event', () => {
  it('reached the receiver under its own id, with a signature that holds', async () => {
    const events = await app.events();
    for (const event of events) {
      const delivered = await receivedById(event.id);
      expect(webhook.verify(delivered.body, delivered.headers as Record<string, string>)).toEqual(
        event,
      );
    }
    expect(events.length).toBeGreaterThan(10);
  });

  it('has a number per subject without a gap', async () => {
    const bySubject = new Map<string, number[]>();
    for (const { data } of await app.events()) {
      const subject = data.operation_id ?? data.token_id ?? data.addr ?? 'service';
      bySubject.set(subject, [...(bySubject.get(subject) ?? []), data.subject_seq]);
    }
    for (const numbers of bySubject.values()) {
      expect(numbers).toEqual(numbers.map((_, i) => i + 1));
    }
  });
});
