/**
 * Deliveries to the brokers that are connected to by a driver of their own. The message is stored
 * when the broker has confirmed it. One deadline covers the connection and the confirmation; what
 * it cuts off may be stored nevertheless, so a repeat of it has the same id.
 */
import { after, monotonicMs } from '../../../kernel/clock.ts';
import { jsonText } from '../../../kernel/json.ts';
import { BROKER_FAULTS } from '../../../resources/delivery/destination.ts';
import type { DestinationSettings } from '../../endpoints/destination/destination.ts';
import { type AttemptResponse, errorCodeOf, notSent } from '../http/attempt.ts';
import type { Decrypt } from '../http/request.ts';
import type { Destination } from './destination.ts';
import { deadlineOf } from './http.ts';
import type { BrokerDriver } from './link.ts';
import { Links } from './links.ts';
import type { Network } from './network.ts';

interface BrokerDeps {
  decrypt: Decrypt;
  network: Network;
  /** From the start to the confirmation. */
  deadlineMs: number;
}

export function makeBroker<S extends DestinationSettings>(
  { decrypt, network, deadlineMs }: BrokerDeps,
  loadDriver: () => Promise<BrokerDriver<S>>,
): Destination {
  const links = new Links();
  const inFlight = new Set<(error: string) => void>();
  let faults: BrokerDriver<S>['faults'] = {};
  return {
    async send(job, startedAt) {
      const { settings, message } = decrypt(job.endpoint).message(job.delivery, startedAt);
      const startedMs = monotonicMs();
      const abort = new AbortController();
      const open = async () => {
        const driver = await loadDriver();
        faults = driver.faults;
        return driver.open(settings as S, network, deadlineMs);
      };
      const { promise: cut, resolve: end } = Promise.withResolvers<AttemptResponse>();
      const cutOff = (error: string) => {
        abort.abort();
        end(notSent(error));
      };
      const cancelDeadline = after(deadlineOf(job.endpoint, deadlineMs), () => cutOff('timeout'));
      inFlight.add(cutOff);
      const { endpointId, encryptedDestination } = job.endpoint;
      const sent = links
        .use(endpointId, encryptedDestination ?? '', { open, signal: abort.signal }, (link) =>
          link.send(message),
        )
        .then(
          (answer) => ({ ...notSent(''), error: null, headers: {}, body: jsonText(answer) }),
          (error: unknown) => notSent(faultOf(error, faults) ?? 'failed'),
        );
      const response = await Promise.race([sent, cut]);
      cancelDeadline();
      inFlight.delete(cutOff);
      return { ...response, durationMs: Math.round(monotonicMs() - startedMs) };
    },
    interrupt() {
      for (const cutOff of inFlight) cutOff('interrupted');
    },
    close: () => links.close(),
  };
}

const CAUSES_MAX = 5;
/** What is found wrong with an address before it is connected to. */
const OWN_FAULTS: Readonly<Record<string, string>> = { url_refused: 'blocked_address' };

/** The first code of ours that an error, its causes or its parts stand for. */
function faultOf(
  error: unknown,
  faults: Readonly<Record<string, string>>,
  depth = 0,
): string | undefined {
  if (typeof error !== 'object' || error === null || depth > CAUSES_MAX) return undefined;
  const { code, apiId, name, cause, errors } = error as Record<string, unknown>;
  const [known] = [apiId, code, name]
    .map(String)
    .map((text) => faults[text] ?? OWN_FAULTS[text] ?? (text in BROKER_FAULTS ? text : undefined))
    .filter((fault) => fault !== undefined);
  // What cut a connection off says more than that it was.
  if (known !== undefined && known !== 'reset') return known;
  const inner = [cause, ...(Array.isArray(errors) ? errors : [])];
  for (const one of inner) {
    const fault = faultOf(one, faults, depth + 1);
    if (fault !== undefined) return fault;
  }
  const own = errorCodeOf(error);
  return own === 'failed' ? known : own;
}
