/**
 * The public keys that a daemon publishes at `/.well-known/webhook-keys`, cached. A signature by
 * no known key makes them fetched again, at most once a minute, so that a rotation needs no work
 * and forged signatures cost the daemon nothing.
 */
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
/** Also without an unknown key, so that a removed one ends. */
const FRESH_MS = 3_600_000;
const BYTES_MAX = 1_048_576;
const KEYS_MAX = 10;

export interface KeySource {
  /** The keys now. @param isUnknown none of those of the last call made the signature */
  keys(isUnknown: boolean): Promise<readonly VerifyingKey[]>;
}

/** Fetches when keys are first asked for. @throws WebhookError `keys_unavailable` in `keys` */
export function makeKeySource(deps: Deps): KeySource {
  let known: readonly VerifyingKey[] = [];
  /** When the last request began, and the last one that succeeded. */
  let askedAt = Number.NEGATIVE_INFINITY;
  let freshAt = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | undefined;
  const refresh = () => {
    askedAt = deps.now();
    running = fetchKeys(deps)
      .then((keys) => {
        known = keys;
        freshAt = askedAt;
      })
      .finally(() => {
        running = undefined;
      });
    return running;
  };
  return {
    async keys(isUnknown) {
      const now = deps.now();
      const isStale = known.length === 0 || now - freshAt >= FRESH_MS;
      const gap = known.length === 0 ? RETRY_MS : REFETCH_MS;
      const isDue = (isUnknown || isStale) && now - askedAt >= gap;
      if (running ?? isDue) {
        // One request serves all who wait, and known keys outlive a daemon that is away.
        await (running ?? refresh()).catch((error: unknown) => {
          if (known.length === 0) throw error;
        });
      }
      if (known.length === 0)
        throw new WebhookError('keys_unavailable', `${deps.url} has no key of ${deps.endpoint}`);
      return known;
    },
  };
}

async function fetchKeys(deps: Deps): Promise<VerifyingKey[]> {
  const { url, endpoint, fetch, timeoutMs = TIMEOUT_MS } = deps;
  const place = new URL('.well-known/webhook-keys', url.endsWith('/') ? url : `${url}/`);
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const answer = await fetch(place, { signal, redirect: 'error' });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const { keys } = JSON.parse(await readText(answer)) as { keys?: unknown };
    if (!Array.isArray(keys)) throw new Error('no list of keys');
    return keys
      .filter((one) => one?.endpoint_id === endpoint)
      .slice(0, KEYS_MAX)
      .map((one) => parseKey(one.public_key));
  } catch (cause) {
    const reason = `the keys at ${place.origin}${place.pathname} cannot be read`;
    throw new WebhookError('keys_unavailable', reason, { cause });
  }
}

async function readText(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.length;
    if (size > BYTES_MAX) throw new Error(`more than ${BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
