/**
 * Amazon SQS and what speaks its protocol: one signed HTTP request for a message, through the
 * client of HTTP receivers with its address rules, deadline and proxies. A status 200 says that the
 * message is stored.
 */
import { AwsV4Signer } from 'aws4fetch';
import type { Clock } from '../../../kernel/clock.ts';
import { jsonText } from '../../../kernel/json.ts';
import { regionOf, type SqsSettings } from '../../endpoints/destination/destination.ts';
import type { AttemptClient, WebhookRequest } from '../http/attempt.ts';
import type { Decrypt, Message } from '../http/request.ts';
import type { Destination } from './destination.ts';
import { redacted } from './http.ts';

/** @param client belongs to the caller, who interrupts and closes it */
export function makeSqs(
  decrypt: Decrypt,
  client: AttemptClient,
  wallClock: Clock,
): Pick<Destination, 'send'> {
  return {
    async send(job, startedAt) {
      const decrypted = decrypt(job.endpoint);
      const { settings, message } = decrypted.message(job.delivery, startedAt);
      const deadlineMs = job.endpoint.timeoutMs ?? undefined;
      const request = await signedRequest(settings as SqsSettings, message, wallClock);
      return redacted(decrypted, await client.post(request, deadlineMs));
    },
  };
}

async function signedRequest(
  settings: SqsSettings,
  message: Message,
  wallClock: Clock,
): Promise<WebhookRequest> {
  const { accessKeyId, secretAccessKey, sessionToken, queueUrl } = settings;
  const body = jsonText(bodyOf(queueUrl, message));
  const signer = new AwsV4Signer({
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
    region: regionOf(settings),
    service: 'sqs',
    method: 'POST',
    url: `${new URL(queueUrl).origin}/`,
    headers: {
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-target': 'AmazonSQS.SendMessage',
    },
    body,
    datetime: new Date(wallClock.now()).toISOString().replace(/[:-]|\.\d{3}/g, ''),
  });
  const { url, headers } = await signer.sign();
  return { url, headers: Object.fromEntries(headers), body: Buffer.from(body) };
}

function bodyOf(queueUrl: string, { id, key, headers, body }: Message): Record<string, unknown> {
  const attributes = Object.entries({ ...headers, 'webhook-subject': key }).map(
    ([name, StringValue]) => [name, { DataType: 'String', StringValue }],
  );
  return {
    QueueUrl: queueUrl,
    MessageBody: body.toString('utf8'),
    MessageAttributes: Object.fromEntries(attributes),
    ...(queueUrl.endsWith('.fifo')
      ? { MessageGroupId: groupOf(key), MessageDeduplicationId: id }
      : {}),
  };
}

/** A group's name has at most 128 characters of ASCII without spaces. */
function groupOf(key: string): string {
  return key.replace(/[^\x21-\x7e]/g, '_').slice(0, 128);
}
