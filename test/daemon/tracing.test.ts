/** Spans of a daemon, as a collector of OpenTelemetry receives them. */
import { createServer, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeApp } from '../harness/app.ts';
import { type DaemonProcess, environmentOf, spawnDaemon } from '../harness/daemon.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { type Receiver, startReceiver } from '../harness/receiver.ts';
import { operationIdOf, useWorld } from '../harness/rig.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  attributes: { key: string; value: Record<string, unknown> }[];
}

const world = await useWorld();
let collector: Receiver;
let daemon: DaemonProcess;
/** What the service was sent as `traceparent`. */
const heard: (string | undefined)[] = [];
const relay = createServer(async (incoming, outgoing) => {
  const { method = 'GET', url = '/', headers } = incoming;
  if (url.includes('/give')) heard.push(headers.traceparent as string | undefined);
  const body = method === 'POST' ? { body: await bodyOf(incoming) } : {};
  const kept = ['content-type', 'authorization'].flatMap((name) =>
    headers[name] === undefined ? [] : [[name, String(headers[name])] as [string, string]],
  );
  const answer = await fetch(`${world.sandbox.url}${url}`, { method, headers: kept, ...body });
  outgoing.writeHead(answer.status, { 'content-type': 'application/json' });
  outgoing.end(await answer.text());
});

beforeAll(async () => {
  collector = await startReceiver();
  const service = `http://127.0.0.1:${await listen(relay)}`;
  daemon = await spawnDaemon(
    {
      ...environmentOf(world.database.url, service),
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '50',
    },
    { http: { port: 0 } },
  );
});
afterAll(async () => {
  await daemon?.kill();
  await closeServer(relay);
  await collector?.close();
});

it('A write is one trace from the app to the service, and its deliveries are spans', async () => {
  const app = makeApp(() => daemon.url);
  const url = `${collector.url}/webhooks`;
  const types = ['operation.accepted'];
  const made = await app.call('POST', '/api/endpoints', { url, event_types: types });
  expect(made.status, made.text).toBe(201);
  const given = await app.give(world.ada, 17, { traceparent: `00-${TRACE}-${PARENT}-01` });
  expect(given.status, given.text).toBe(200);
  await expect.poll(() => namesOf(spans()), { timeout: 20_000 }).toContain('deliver');
  await expect.poll(() => namesOf(ofTrace())).toEqual(['conclude', 'record', 'send', 'write give']);

  const write = spanOf('write give');
  expect(write.parentSpanId).toBe(PARENT);
  expect(valuesOf(write)).toMatchObject({
    'http.response.status_code': 200,
    'tallyhook.operation': operationIdOf(given),
    'tallyhook.outcome': 'accepted',
  });
  for (const name of ['record', 'send', 'conclude'])
    expect(spanOf(name).parentSpanId).toBe(write.spanId);
  expect(heard).toEqual([`00-${TRACE}-${spanOf('send').spanId}-01`]);
  expect(valuesOf(spanOf('deliver', spans()))).toMatchObject({
    'tallyhook.endpoint': made.json.id,
    'http.response.status_code': 200,
  });
});

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of incoming) text += chunk;
  return text;
}

function spans(): ReceivedSpan[] {
  return collector.requests
    .filter(({ path }) => path === '/v1/traces')
    .flatMap(({ body }) => JSON.parse(body).resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap((scope) => scope.spans);
}

function ofTrace(): ReceivedSpan[] {
  return spans().filter(({ traceId }) => traceId === TRACE);
}

function namesOf(found: readonly ReceivedSpan[]): string[] {
  return found.map(({ name }) => name).sort();
}

function spanOf(name: string, among = ofTrace()): ReceivedSpan {
  const found = among.find((span) => span.name === name);
  if (!found) throw new Error(`no span ${name}`);
  return found;
}

function valuesOf({ attributes }: ReceivedSpan): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const [first] = Object.values(value);
      return [key, 'intValue' in value ? Number(first) : first];
    }),
  );
}
