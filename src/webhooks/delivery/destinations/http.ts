/** HTTP receivers: a signed POST of Standard Webhooks. */
import type { AttemptClient, AttemptResponse } from '../http/attempt.ts';
import type { RequestBuilder } from '../http/request.ts';
import type { ClaimedEndpoint } from '../queue.ts';
import type { Destination } from './destination.ts';

const NO_BODY = Buffer.alloc(0);

/** @param client belongs to the caller, who interrupts and closes it */
export function makeHttp(
  requests: RequestBuilder,
  client: AttemptClient,
): Pick<Destination, 'send'> {
  return {
    async send({ delivery, endpoint }, startedAt) {
      const event = { id: delivery.eventId, body: delivery.body ?? NO_BODY };
      const response = await client.post(requests.build(endpoint, event, startedAt));
      return redacted(requests, endpoint, response);
    },
  };
}

/** The response without the secrets of the endpoint. */
export function redacted(
  requests: RequestBuilder,
  endpoint: ClaimedEndpoint,
  response: AttemptResponse,
): AttemptResponse {
  const redact = (text: string) => requests.redact(endpoint, text);
  const headers = Object.entries(response.headers ?? {});
  return {
    ...response,
    body: response.body && redact(response.body),
    headers: response.headers && Object.fromEntries(headers.map(([k, v]) => [k, redact(v)])),
  };
}
