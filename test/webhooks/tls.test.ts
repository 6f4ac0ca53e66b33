/** TLS towards receivers: each fault of a handshake has a stable code in the log of attempts. */
import { afterAll, expect, it } from 'vitest';
import { makeAttemptClient } from '../../src/webhooks/delivery/http/attempt.ts';
import { parseRanges } from '../../src/webhooks/endpoints/address.ts';
import { FAULTY, useFaultyServers } from '../harness/faulty-tls.ts';

const servers = useFaultyServers();
const limits = { deadlineMs: 5_000, bodyMs: 500, readBytesMax: 1_000, keepBytesMax: 1_000 };
const client = makeAttemptClient(limits, parseRanges(['127.0.0.0/8']));
afterAll(() => client.close());

const attempt = (what: string) =>
  client.post({
    url: new URL(`https://127.0.0.1:${servers.portOf(what)}/hook`),
    headers: {},
    body: Buffer.from('{}'),
  });

it('A receiver with a certificate of a known authority is reached', async () => {
  expect(await attempt('good')).toMatchObject({ status: 200, error: null });
});

it.each(FAULTY)('A receiver that is %s has the error %s', async (what, error) => {
  expect(await attempt(what)).toMatchObject({ status: null, error });
});
