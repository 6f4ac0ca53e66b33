/**
 * A day in the life of an installation, in half a minute: every kind of row that a later release
 * has to understand. Writes of each kind that settle, are refused, get lost, wait in the queue; a
 * change made elsewhere; keys, watches, webhooks, a report, a freeze.
 */
import { systemClock } from '../../../src/kernel/clock.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import { type Answered, type App, makeApp } from '../../harness/app.ts';
import { CLIENT, environmentOf, QUICK, spawnDaemon } from '../../harness/daemon.ts';
import { startReceiver } from '../../harness/receiver.ts';

/** The idempotency key of a write that the service accepted, and its amount. */
export const KEPT_KEY = 'order-17';
export const KEPT_AMOUNT = 17;

/** @param url the owner's login of a migrated database; the daemon has ended afterwards */
export async function makeTraffic(url: string): Promise<void> {
  const sandbox = await startSandbox({ ...CLIENT, seed: 11, clock: systemClock, settleMs: 150 });
  const receiver = await startReceiver();
  const daemon = await spawnDaemon(environmentOf(url, sandbox.url), QUICK);
  try {
    const app = makeApp(() => daemon.url);
    const [ada = '', ben = ''] = sandbox.control.state().members.map(({ addr }) => addr ?? '');
    const wallets = [ada, ben].map((addr) => ({ kind: 'wallet', addr }));
    await ok(app.call('POST', '/api/watches', wallets));
    await ok(
      app.call('POST', '/api/endpoints', { url: `${receiver.url}/hook`, event_types: ['*'] }),
    );
    await ok(app.call('POST', '/api/keys', { name: 'shop', owner: 'shop', scopes: ['gateway'] }));
    await ends(app, await ok(app.give(ada, KEPT_AMOUNT, { 'idempotency-key': KEPT_KEY })));
    await ends(app, await ok(app.transfer(ada, ben, 5)));
    await ends(app, await ok(app.mint(ada, 4_711)));
    await app.give(ada, 0);
    sandbox.control.addFault({ kind: 'lost_answer', contains: '1013' });
    const lost = operationOf(await app.give(ben, 1_013));
    await app.until(({ type, data }) => isEnd(type) && data.operation_id === lost);
    await outsideChange(app, sandbox, ada);
    sandbox.control.maintenance({ state: 'on' });
    await ok(app.give(ada, 19, { prefer: 'respond-async', 'idempotency-key': 'queued' }));
    const now = new Date(systemClock.now()).toISOString();
    const period = { from: '2026-01-01T00:00:00Z', to: now };
    await ok(app.call('POST', '/api/reports', { kind: 'reconciliation', ...period }));
    await app.until(({ type }) => type === 'report.completed');
    await ok(app.call('POST', '/api/freeze', { reason: 'the last act' }));
    await ok(app.call('POST', '/api/unfreeze', { reason: 'it is over' }));
  } finally {
    await daemon.stop();
    await receiver.close();
    await sandbox.close();
  }
}

/** A change of a wallet that nothing of ours explains. */
async function outsideChange(
  app: App,
  sandbox: Awaited<ReturnType<typeof startSandbox>>,
  addr: string,
): Promise<void> {
  const { wallets } = sandbox.control.state();
  const wallet = wallets.find((one) => one.addr.toLowerCase() === addr.toLowerCase());
  sandbox.control.setWallet(addr, { amt_token: (wallet?.balance ?? 0n) + 29n });
  await app.until(({ type }) => type === 'wallet.drift_opened');
}

function operationOf({ headers }: Answered): string {
  return String(headers['tallyhook-operation']);
}

function isEnd(type: string): boolean {
  return /^operation\.(settled|failed|resolved|undecided)$/.test(type);
}

async function ends(app: App, answer: Answered): Promise<void> {
  const id = operationOf(answer);
  await app.until(({ type, data }) => isEnd(type) && data.operation_id === id);
}

async function ok(call: Promise<Answered>): Promise<Answered> {
  const answer = await call;
  if (answer.status >= 300) throw new Error(`answered ${answer.status} ${answer.text}`);
  return answer;
}
