/** SQS, by moto of PyPI, which checks signatures as AWS does. */
import { AwsV4Signer } from 'aws4fetch';
import { request } from 'undici';
import { jsonText } from '../../src/kernel/json.ts';
import { freePort } from '../harness/listen.ts';
import { BROKERS, type Broker, type Stored, startProgram } from './broker.ts';

interface Keys {
  accessKeyId: string;
  secretAccessKey: string;
}
interface SqsMessage {
  Body: string;
  ReceiptHandle: string;
  Attributes?: Record<string, string>;
  MessageAttributes?: Record<string, { StringValue: string }>;
}

const REGION = 'eu-west-1';
const FIRST_KEYS = { accessKeyId: 'setup', secretAccessKey: 'setup' };

/** Before it has so many requests moto checks no signature: those that make a user. */
const UNCHECKED = '3';

export async function startSqs(folder: string, programs = BROKERS): Promise<Broker> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const server = await startProgram(
    folder,
    [`${programs}/moto/bin/moto_server`, '-H', '127.0.0.1', '-p', String(port)],
    port,
    { INITIAL_NO_AUTH_ACTION_COUNT: UNCHECKED },
  );
  const keys = await makeUser(url);
  const makeQueue = async (name: string, attributes = {}) => {
    const made = await sqs(url, keys, 'CreateQueue', { QueueName: name, Attributes: attributes });
    return String(made.QueueUrl);
  };
  const queueUrl = await makeQueue('events.fifo', { FifoQueue: 'true' });
  const destination = { kind: 'sqs', queueUrl, region: REGION, ...keys } as const;
  const seen: Stored[] = [];
  const wrongKey = 'wrong+secret/of/the+queue/0123456789';
  return {
    destination,
    wrong: {
      destination: { ...destination, secretAccessKey: wrongKey },
      secret: wrongKey,
      refusal: { status: 403, error: null },
    },
    missing: {
      destination: { ...destination, queueUrl: `${queueUrl.slice(0, -'.fifo'.length)}x.fifo` },
      refusal: { status: 400, error: null },
    },
    async stored() {
      for (;;) {
        const { Messages: messages = [] } = (await sqs(url, keys, 'ReceiveMessage', {
          QueueUrl: queueUrl,
          MaxNumberOfMessages: 10,
          MessageAttributeNames: ['All'],
          AttributeNames: ['All'],
        })) as { Messages?: SqsMessage[] };
        if (messages.length === 0) return seen;
        seen.push(...messages.map(storedOf));
        await sqs(url, keys, 'DeleteMessageBatch', {
          QueueUrl: queueUrl,
          Entries: messages.map(({ ReceiptHandle: handle }, n) => {
            return { Id: String(n), ReceiptHandle: handle };
          }),
        });
      }
    },
    // It keeps its queues in memory.
    async fail() {
      server.child.kill('SIGSTOP');
    },
    async recover() {
      server.child.kill('SIGCONT');
    },
    async close() {
      server.child.kill('SIGCONT');
      await server.end();
    },
  };
}

function storedOf({ Body: body, Attributes = {}, MessageAttributes = {} }: SqsMessage): Stored {
  const headers = Object.fromEntries(
    Object.entries(MessageAttributes).map(([name, { StringValue }]) => [name, StringValue]),
  );
  const { MessageDeduplicationId: id, MessageGroupId: group } = Attributes;
  // The group is the key, as far as a group may have its characters.
  const key = group === headers['webhook-subject'] ? group : undefined;
  return { id, key, headers, body: Buffer.from(body) };
}

async function makeUser(url: string): Promise<Keys> {
  const iam = async (parameters: Record<string, string>) => {
    const body = new URLSearchParams({ Version: '2010-05-08', ...parameters }).toString();
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    return send(url, FIRST_KEYS, { service: 'iam', region: 'us-east-1', headers: type, body });
  };
  await iam({ Action: 'CreateUser', UserName: 'tallyhook' });
  const made = await iam({ Action: 'CreateAccessKey', UserName: 'tallyhook' });
  const policy = {
    Version: '2012-10-17',
    Statement: [{ Effect: 'Allow', Action: '*', Resource: '*' }],
  };
  await iam({
    Action: 'PutUserPolicy',
    UserName: 'tallyhook',
    PolicyName: 'all',
    PolicyDocument: jsonText(policy),
  });
  const memberOf = (name: string) => new RegExp(`<${name}>([^<]+)<`).exec(made)?.[1] ?? '';
  return { accessKeyId: memberOf('AccessKeyId'), secretAccessKey: memberOf('SecretAccessKey') };
}

async function sqs(url: string, keys: Keys, action: string, input: object) {
  const headers = {
    'content-type': 'application/x-amz-json-1.0',
    'x-amz-target': `AmazonSQS.${action}`,
  };
  const body = jsonText(input);
  const text = await send(url, keys, { service: 'sqs', region: REGION, headers, body });
  return (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
}

async function send(
  url: string,
  keys: Keys,
  what: { service: string; region: string; headers: Record<string, string>; body: string },
): Promise<string> {
  const signer = new AwsV4Signer({ ...keys, ...what, method: 'POST', url: `${url}/` });
  const signed = await signer.sign();
  const answer = await request(signed.url, {
    method: 'POST',
    headers: Object.fromEntries(signed.headers),
    body: what.body,
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${text}`);
  return text;
}
