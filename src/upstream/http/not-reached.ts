/** Logs why the service is not reached: a name, a port, a certificate or a proxy. */
import { monotonicMs } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import type { NotSentCause } from './exchange.ts';
import type { Transport } from './transport.ts';

/** Causes that say nothing of the way to the service. */
const OWN = new Set<NotSentCause>([
  'deadline',
  'withdrawn',
  'aborted',
  'invalid_request',
  'no_client_token',
  'busy',
]);
const LOGGED_EVERY_MS = 60_000;

/**
 * The transport, which logs each cause once a minute and address, not for each request.
 * @param nowMs counts milliseconds
 */
export function loggingFaults(
  transport: Transport,
  log: Log,
  nowMs: () => number = monotonicMs,
): Transport {
  const loggedAt = new Map<string, number>();
  const isNew = (name: string) => {
    const last = loggedAt.get(name);
    if (last !== undefined && nowMs() - last < LOGGED_EVERY_MS) return false;
    loggedAt.set(name, nowMs());
    return true;
  };
  return {
    ...transport,
    async exchange(cls, request) {
      const exchanged = await transport.exchange(cls, request);
      if (exchanged.end !== 'not_sent' || OWN.has(exchanged.cause)) return exchanged;
      const { cause } = exchanged;
      const { origin } = request;
      if (isNew(`${cause} ${origin}`))
        log.warn({ cause, origin }, 'the service is not reached; logged once a minute');
      return exchanged;
    },
  };
}
