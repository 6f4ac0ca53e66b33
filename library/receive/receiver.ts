/**
 * A receiver: from the message to the handler of its event, and to the answer that the sender
 * gets. An event is done when its handler resolved; until then each further delivery is another
 * try.
 */
import { makeLocks } from './deadline.ts';
import { WebhookError, type WebhookErrorCode } from './errors.ts';
import { type AnyEvent, type EventOf, parseEvent } from './event.ts';
import type { EventType, TallyhookEvent } from './events.ts';
import { type Adapters, makeAdapters } from './http.ts';
import { parseKey } from './keys.ts';
import { memoryOrder, type Order, type OrderStore, orderOf, subjectOf } from './order.ts';
import { makeKeySource, type PublishedKeys } from './published.ts';
import { memorySeen, type SeenStore } from './seen.ts';
import { type Envelope, type Message, verifyMessage } from './verify.ts';

/** What is known of a delivery beside its event. */
export interface Delivery {
  /** When this attempt was sent, in unix seconds. */
  sentAt: number;
  /** Undefined for an event whose group this version does not know. */
  subject: string | undefined;
  order: Order;
}

/** One function for all events, or one for each type; other types are taken and dropped. */
export type Handler =
  | ((event: TallyhookEvent, delivery: Delivery) => unknown)
  | { readonly [T in EventType]?: (event: EventOf<T>, delivery: Delivery) => unknown };

export interface ReceiverOptions {
  /**
   * `whsec_…` secrets and `whpk_…` public keys. A signature by any of them is valid, so both keys
   * of a rotation may stand here; undefined ones, of variables that are not set, are an error.
   */
  keys?: string | undefined | readonly (string | undefined)[];
  /** Public keys that the daemon publishes, instead of or beside `keys`. */
  published?: PublishedKeys;
  /** How old a delivery may be, and how far ahead its sender's clock; 300 s by default. */
  toleranceS?: number;
  /** Of a body; 1 MiB by default. */
  bodyBytesMax?: number;
  /** From the head of a request to the end of its body; 10,000 ms by default. */
  bodyTimeoutMs?: number;
  /** 10,000 events in memory by default; false hands every delivery to the handler. */
  seen?: SeenStore | false;
  /** 10,000 subjects in memory by default. */
  order?: OrderStore;
  /** Stale events are taken and not handled, such as an older balance after a newer one. */
  onlyNewer?: boolean;
  /** Called with every refusal, such as for a log. What it throws is ignored. */
  onRefused?: (error: WebhookError) => unknown;
  /** Unix milliseconds, and requests; replaced in tests. */
  now?: () => number;
  fetch?: typeof globalThis.fetch;
}

/** What the sender gets. Any 2xx ends the delivery, all else makes it come again. */
export interface Answer {
  status: number;
  result: 'handled' | 'duplicate' | 'stale' | WebhookErrorCode;
  /** In words, of a refusal. */
  reason?: string;
}

export interface Receiver extends Adapters {
  /** Verifies a message and returns its event. @throws WebhookError */
  verify(message: Message): Promise<TallyhookEvent>;
  /** Verifies a message, hands its event to the handler, and says what to answer. Never throws. */
  receive(message: Message, handler: Handler): Promise<Answer>;
}

const TOLERANCE_S = 300;
const TAKEN = 204;

/** @throws WebhookError `bad_key` without a key that can verify */
export function makeReceiver(options: ReceiverOptions): Receiver {
  const { toleranceS = TOLERANCE_S, order = memoryOrder(), onlyNewer = false } = options;
  const { seen = memorySeen(), now = Date.now, fetch = globalThis.fetch, published } = options;
  const input = options.keys ?? (published ? [] : undefined);
  const keys = [input ?? ''].flat().map(parseKey);
  if (keys.length === 0 && !published) throw new WebhookError('bad_key', 'there are no keys');
  if (!(toleranceS >= 0 && toleranceS <= 86_400))
    throw new RangeError('toleranceS must be 0 to 86400 seconds');
  const source = published && makeKeySource({ ...published, now, fetch });
  const inOrder = makeLocks();

  async function envelopeOf(message: Message): Promise<Envelope> {
    const check = (all: typeof keys) =>
      verifyMessage(message, { keys: all, nowMs: now(), toleranceS });
    const isUnknown = (error: unknown) =>
      error instanceof WebhookError && error.code === 'bad_signature';
    let known = keys;
    // Keys at hand come first: they need no request.
    for (const isLast of source ? [false, false, true] : [true]) {
      try {
        return check(known);
      } catch (error) {
        if (isLast || !source || !isUnknown(error)) throw error;
        const hadPublished = known !== keys;
        known = [...keys, ...(await source.keys(hadPublished))];
      }
    }
    throw new WebhookError('bad_signature', 'no signature is valid');
  }

  async function open(message: Message): Promise<{ event: AnyEvent; envelope: Envelope }> {
    const envelope = await envelopeOf(message);
    return { event: parseEvent(message.body, envelope.id), envelope };
  }

  async function handle(event: AnyEvent, sentAt: number, handler: Handler): Promise<Answer> {
    const subject = subjectOf(event);
    const { subject_seq: seq } = event.data;
    const newest = subject === undefined ? undefined : await order.newest(subject);
    const position = orderOf(seq, newest);
    if (onlyNewer && position.kind === 'stale') return { status: TAKEN, result: 'stale' };
    try {
      await handlerOf(handler, event)?.(event as never, { sentAt, subject, order: position });
    } catch (cause) {
      throw new WebhookError('handler_failed', 'the handler of the event failed', { cause });
    }
    if (subject !== undefined) await order.handled(subject, seq);
    return { status: TAKEN, result: 'handled' };
  }

  async function once(event: AnyEvent, sentAt: number, handler: Handler): Promise<Answer> {
    // One event of a subject at a time, so that a newer one cannot overtake.
    const work = () => inOrder(subjectOf(event) ?? event.id, () => handle(event, sentAt, handler));
    if (!seen) return work();
    const claim = await seen.claim(event.id);
    if (claim === 'done') return { status: TAKEN, result: 'duplicate' };
    if (claim === 'busy')
      throw new WebhookError('in_progress', 'another delivery of the event is being handled');
    try {
      const answer = await work();
      await seen.done(event.id);
      return answer;
    } catch (error) {
      await seen.release(event.id);
      throw error;
    }
  }

  async function refuse(error: unknown): Promise<Answer> {
    const known =
      error instanceof WebhookError
        ? error
        : new WebhookError('store_failed', 'a store of the receiver failed', { cause: error });
    try {
      await options.onRefused?.(known);
    } catch {
      // The answer is due all the same.
    }
    return { status: known.status, result: known.code, reason: known.message };
  }

  const receiver = {
    async verify(message: Message) {
      return (await open(message)).event as TallyhookEvent;
    },
    async receive(message: Message, handler: Handler) {
      try {
        const { event, envelope } = await open(message);
        return await once(event, envelope.timestamp, handler);
      } catch (error) {
        return refuse(error);
      }
    },
  };
  const { bodyBytesMax, bodyTimeoutMs } = options;
  return { ...receiver, ...makeAdapters({ ...receiver, refuse }, { bodyBytesMax, bodyTimeoutMs }) };
}

function handlerOf(handler: Handler, { type }: AnyEvent) {
  if (typeof handler === 'function') return handler;
  return Object.hasOwn(handler, type) ? handler[type as EventType] : undefined;
}
