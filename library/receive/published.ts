/**
 * The public keys that a daemon publishes at `/.well-known/webhook-keys`, cached. They are
 * fetched again each hour, and after a signature by no known key, at most once a minute: a
 * rotation needs no change at the receiver, and forged signatures cause few requests.
 */
import { readParts } from './body.ts';
import { WebhookError } from './errors.ts';
import { parseKey, type VerifyingKey } from './keys.ts';

export interface PublishedKeys {
  /** The address of the daemon; it must be https, or reached on a network that you trust. */
  url: string;
  /** `ep_…`: the endpoint whose keys count. A daemon has those of other subscribers, too. */
  endpoint: string;
  /** Of a request; 5,000 ms by default. */
  timeoutMs?: number;
}

interface Deps extends PublishedKeys {
  now: () => number;
  fetch: typeof globalThis.fetch;
}

const TIMEOUT_MS = 5_000;
const REFETCH_MS = 60_000;
/** While there is no key at all, such as right after the endpoint was made. */
const RETRY_MS = 1_000;
/** Older keys are fetched again beside the deliveries that they verify. */
const FRESH_MS = 3_600_000;
/** No key is valid for longer after the daemon last gave it, also while the daemon is away. */
const KEPT_MS = 86_400_000;
const BYTES_MAX = 1_048_576;
const KEYS_MAX = 10;

export interface KeySource {
  /**
   * The keys now. Waits for a request only without any key, or after an unknown one.
   * @param isUnknown none of the keys of the last call made the signature
   * @throws WebhookError `keys_unavailable`
   */
  keys(isUnknown: boolean): Promise<readonly VerifyingKey[]>;
}

/** Makes no request before keys are first asked for. */
export function makeKeySource(deps: Deps): KeySource {
  let known: readonly VerifyingKey[] = [];
  /** When the last request began, and the last one that succeeded. */
  let askedAt = Number.NEGATIVE_INFINITY;
  let freshAt = Number.NEGATIVE_INFINITY;
  /** The only request that runs; it serves all who wait, and never rejects. */
  let running: Promise<void> | undefined;
  let failure: unknown;

  async function refresh(): Promise<void> {
    askedAt = deps.now();
    failure = undefined;
    try {
      known = await fetchKeys(deps);
      freshAt = askedAt;
    } catch (error) {
      failure = error;
    } finally {
      running = undefined;
    }
  }

  return {
    async keys(isUnknown) {
      const now = deps.now();
      if (now - freshAt >= KEPT_MS) known = [];
      const isStale = known.length === 0 || now - freshAt >= FRESH_MS;
      const gap = known.length === 0 ? RETRY_MS : REFETCH_MS;
      if ((isUnknown || isStale) && now - askedAt >= gap) running ??= refresh();
      if (isUnknown || known.length === 0) await running;
      if (known.length > 0) return known;
      const none = `${deps.url} gave no key of ${deps.endpoint} in the last 24 hours`;
      throw failure ?? new WebhookError('keys_unavailable', none);
    },
  };
}

async function fetchKeys(deps: Deps): Promise<VerifyingKey[]> {
  const { url, endpoint, fetch, timeoutMs = TIMEOUT_MS } = deps;
  const address = new URL('.well-known/webhook-keys', url.endsWith('/') ? url : `${url}/`);
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(address, { signal, redirect: 'error' });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const { keys } = JSON.parse(await readText(response)) as { keys?: unknown };
    if (!Array.isArray(keys)) throw new Error('no list of keys');
    return keys
      .filter((one) => one?.endpoint_id === endpoint)
      .slice(0, KEYS_MAX)
      .map((one) => parseKey(one.public_key));
  } catch (cause) {
    const reason = `the keys at ${address.origin}${address.pathname} cannot be read`;
    throw new WebhookError('keys_unavailable', reason, { cause });
  }
}

async function readText({ body }: Response): Promise<string> {
  return body ? Buffer.from(await readParts(body, BYTES_MAX)).toString() : '';
}
