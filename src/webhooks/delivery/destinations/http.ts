/**
 * HTTP receivers: a signed POST of Standard Webhooks, with a token of OAuth 2 if the endpoint has
 * that. One deadline covers the token and the request. A token that the receiver answers with 401
 * is replaced, and the request repeated once in the same attempt, unless the token was new.
 */
import { monotonicMs } from '../../../kernel/clock.ts';
import type { OAuth2Settings } from '../../endpoints/destination/auth.ts';
import {
  type AttemptClient,
  type AttemptResponse,
  notSent,
  type WebhookRequest,
} from '../http/attempt.ts';
import type { Decrypt, DecryptedEndpoint } from '../http/request.ts';
import type { Token, Tokens } from '../http/tokens.ts';
import type { ClaimedEndpoint } from '../queue.ts';
import type { Destination } from './destination.ts';

interface HttpDeps {
  decrypt: Decrypt;
  /** Belongs to the caller, who interrupts and closes it. */
  client: AttemptClient;
  tokens: Tokens;
  deadlineMs: number;
}

const NO_BODY = Buffer.alloc(0);

export function makeHttp(deps: HttpDeps): Pick<Destination, 'send'> {
  const { decrypt, client } = deps;
  return {
    async send({ delivery, endpoint }, startedAt) {
      const event = { id: delivery.eventId, body: delivery.body ?? NO_BODY };
      const decrypted = decrypt(endpoint);
      const request = decrypted.request(event, startedAt);
      const { oauth2 } = decrypted;
      const deadlineMs = deadlineOf(endpoint, deps.deadlineMs);
      const response = oauth2
        ? await postWithToken({ ...deps, deadlineMs }, endpoint.endpointId, oauth2, request)
        : await client.post(request, deadlineMs);
      return redacted(decrypted, response);
    },
  };
}

/** Of an attempt at an endpoint; the common one bounds its own. */
export function deadlineOf(
  { timeoutMs }: Pick<ClaimedEndpoint, 'timeoutMs'>,
  deadlineMs: number,
): number {
  return Math.min(timeoutMs ?? deadlineMs, deadlineMs);
}

async function postWithToken(
  { client, tokens, deadlineMs }: HttpDeps,
  endpointId: string,
  oauth2: OAuth2Settings,
  request: WebhookRequest,
): Promise<AttemptResponse> {
  const startedMs = monotonicMs();
  const leftMs = () => deadlineMs - (monotonicMs() - startedMs);
  const timed = (response: AttemptResponse) => ({
    ...response,
    durationMs: Math.round(monotonicMs() - startedMs),
  });
  const post = async ({ value, redact }: Token) => {
    const others = Object.entries(request.headers).filter(
      ([name]) => !/^authorization$/i.test(name),
    );
    const headers = { ...Object.fromEntries(others), authorization: `Bearer ${value}` };
    return changed(await client.post({ ...request, headers }, leftMs()), redact);
  };
  for (;;) {
    const got = await tokens.get(endpointId, oauth2, leftMs());
    if ('failed' in got) return timed(got.failed);
    if (leftMs() <= 0) return timed(notSent('timeout'));
    const response = await post(got.token);
    if (response.status !== 401) return timed(response);
    tokens.forget(endpointId, got.token);
    if (got.isNew || leftMs() <= 0) return timed(response);
  }
}

/** The response without the secrets of the endpoint. */
export function redacted(
  { redact }: DecryptedEndpoint,
  response: AttemptResponse,
): AttemptResponse {
  return changed(response, redact);
}

function changed(response: AttemptResponse, change: (text: string) => string): AttemptResponse {
  const headers = Object.entries(response.headers ?? {});
  return {
    ...response,
    body: response.body && change(response.body),
    headers: response.headers && Object.fromEntries(headers.map(([k, v]) => [k, change(v)])),
  };
}
