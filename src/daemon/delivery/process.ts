/**
 * The process that sends the webhooks of a daemon. It is controlled by messages and SIGTERM, and
 * ends at once when the daemon is gone: what it was sending is then sent again, with the same id.
 */
import { makeLog, printLine } from '../../kernel/log.ts';
import { startTracing } from '../config/tracing.ts';
import { untilStopped } from '../process.ts';
import { type Delivery, openDelivery } from './delivery.ts';
import type { FromDelivery, Start, ToDelivery } from './messages.ts';

/** Runs until the daemon or a signal stops it; returns the exit code. */
export function runDelivery(): Promise<number> {
  if (!process.connected) {
    printLine('a daemon starts this process; set TALLYHOOK_ROLES=delivery and run npm start');
    return Promise.resolve(1);
  }
  const abandoned = new Promise<number>((resolve) => {
    process.once('disconnect', () => resolve(1));
  });
  return Promise.race([abandoned, deliver()]);
}

async function deliver(): Promise<number> {
  const start = await new Promise<Start>((resolve) => process.once('message', resolve));
  const log = makeLog(start.config.log.level).child({ process: 'delivery' });
  const stopTracing = await startTracing(log);
  let delivery: Delivery;
  try {
    delivery = await openDelivery(start, log);
  } catch (err) {
    log.error({ err }, 'the delivery process could not start');
    return 1;
  }
  const { stop, recoversFrom } = delivery;
  process.on('message', (message: ToDelivery) => obey(delivery, message));
  const ended = untilStopped({ log, stop, recoversFrom });
  tell({ kind: 'ready' });
  return ended.finally(stopTracing);
}

function obey(delivery: Delivery, message: ToDelivery): void {
  if (message.kind === 'wake') delivery.wake();
  if (message.kind !== 'report') return;
  delivery.shareAmong(message.daemons);
  void delivery.snapshot().then((metrics) => tell({ kind: 'report', metrics }));
}

function tell(message: FromDelivery): void {
  // A daemon that is gone also ends the connection, which is handled above.
  process.send?.(message, undefined, undefined, () => {});
}
