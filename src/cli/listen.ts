/**
 * For those who develop a receiver: `tallyhook listen` forwards the events of a daemon to an
 * address of their own as signed webhooks, `tallyhook trigger` sends it the example of one type.
 */
import { createInterface } from 'node:readline';
import { request } from 'undici';
import { isoText, monotonicMs, pause, systemClock } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { isId } from '../kernel/ids.ts';
import { jsonText } from '../kernel/json.ts';
import { systemRandom } from '../kernel/random.ts';
import { printLine } from '../kernel/telemetry/log.ts';
import { exampleOfEvent } from '../resources/delivery/event.ts';
import { EVENT_TYPES } from '../resources/delivery/events.ts';
import { problemText } from '../resources/faults.ts';
import { makeKey, parseKey, signedHeaders } from '../webhooks/webhooks.ts';
import { type Remote, readDaemon } from './api/remote.ts';

interface Receiver {
  forwardTo?: string;
  secret?: string;
}

interface ListenOptions extends Remote, Receiver {
  type?: string[];
  last: number;
  count?: number;
  json?: true;
}

const FORWARD_TIMEOUT_MS = 15_000;
const RECONNECT_MS = 1_000;

/** Runs until it is stopped, or after `count` events; exits with 1 when one was not taken. */
export async function runListen(options: ListenOptions): Promise<number> {
  const { type: types = [], last, count = Number.POSITIVE_INFINITY, json } = options;
  const forward = forwarderOf(options);
  const query = types.length > 0 ? `&types=${encodeURIComponent(types.join(','))}` : '';
  let seen = 0;
  let failed = 0;
  for (let id = ''; ; ) {
    const headers: Record<string, string> = id === '' ? {} : { 'last-event-id': id };
    try {
      const path = `/api/events?last=${last}${query}`;
      const stream = await readDaemon(options, { path, accept: 'text/event-stream', headers });
      if (id === '' && !json) printLine(`listens to ${options.url}${toWhom(options, forward)}`);
      for await (const event of framesOf(stream)) {
        id = event.id;
        if (event.data === '') continue;
        if (!(await show(event, forward, json))) failed += 1;
        if (++seen >= count) return failed > 0 ? 1 : 0;
      }
    } catch (error) {
      // What was never connected is a mistake of the command; later the daemon may restart.
      if (id === '') throw error;
      if (!json) printLine('The daemon does not answer; trying again');
    }
    await pause(RECONNECT_MS);
  }
}

/** Sends the example of a type once; exits with 1 unless the receiver takes it. */
export async function runTrigger(
  type: string,
  options: Receiver & { forwardTo: string },
): Promise<number> {
  const known = EVENT_TYPES.find((one) => one === type);
  if (!known) throw new Failure('bad_setting', `${type}: one of ${EVENT_TYPES.join(', ')}`);
  const forward = forwarderOf(options);
  if (forward && options.secret === undefined) printLine(`signed with ${forward.secret}`);
  const data = jsonText({ ...exampleOfEvent(known), timestamp: isoText(systemClock.now()) });
  return (await show({ id: '', type, data }, forward, undefined)) ? 0 : 1;
}

interface Frame {
  id: string;
  type: string;
  data: string;
}

/** The events of a stream; one without data only carries an id. */
async function* framesOf(input: NodeJS.ReadableStream): AsyncGenerator<Frame> {
  let frame: Frame = { id: '', type: '', data: '' };
  for await (const line of createInterface({ input })) {
    const at = line.indexOf(': ');
    const [name, value] = [line.slice(0, at), line.slice(at + 2)];
    if (name === 'id') frame.id = value;
    if (name === 'event') frame.type = value;
    if (name === 'data') frame.data = value;
    if (line !== '') continue;
    yield frame;
    frame = { id: frame.id, type: '', data: '' };
  }
}

interface Forwarder {
  secret: string;
  /** Answers a status or an error code. */
  send(body: string): Promise<{ taken: boolean; answer: string }>;
}

/** Undefined without an address. @throws Failure `bad_setting` */
function forwarderOf({ forwardTo, secret }: Receiver): Forwarder | undefined {
  if (forwardTo === undefined) return undefined;
  const url = URL.parse(forwardTo);
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new Failure(
      'bad_setting',
      `${forwardTo}: expected an address such as http://127.0.0.1:3000/webhooks`,
    );
  const used = secret ?? makeKey('v1', systemClock.now(), systemRandom).secret;
  const key = parseKey(used);
  return {
    secret: used,
    async send(body) {
      const { id } = JSON.parse(body) as { id: string };
      if (!isId('evt', id)) throw new Failure('bad_setting', 'the daemon sent an event without id');
      const timestamp = Math.floor(systemClock.now() / 1000);
      const message = { id, timestamp, body: Buffer.from(body) };
      try {
        const response = await request(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...signedHeaders(message, [key]) },
          body,
          signal: AbortSignal.timeout(FORWARD_TIMEOUT_MS),
        });
        await response.body.dump();
        const { statusCode } = response;
        return { taken: statusCode >= 200 && statusCode < 300, answer: `${statusCode}` };
      } catch (error) {
        return { taken: false, answer: problemText(error) };
      }
    },
  };
}

function toWhom({ forwardTo, secret }: Receiver, forward: Forwarder | undefined): string {
  if (!forward) return '';
  const signed = secret === undefined ? `, signed with ${forward.secret}` : '';
  return ` and forwards to ${forwardTo}${signed}`;
}

/** Prints an event, and sends it where it is forwarded; false when it was not taken. */
async function show(
  { type, data }: Frame,
  forward: Forwarder | undefined,
  json: true | undefined,
): Promise<boolean> {
  const startedMs = monotonicMs();
  const sent = await forward?.send(data);
  if (json) printLine(data);
  else {
    const { id, timestamp } = JSON.parse(data) as { id: string; timestamp: string };
    const took = `${Math.round(monotonicMs() - startedMs)} ms`;
    printLine(`${timestamp}  ${type}  ${id}${sent ? `  ${sent.answer} in ${took}` : ''}`);
  }
  return sent?.taken ?? true;
}
