/**
 * What a receiver of Tallyhook's webhooks imports: `makeReceiver` verifies, types, de-duplicates
 * and orders events, and answers their sender. It has no dependencies.
 */
export { WebhookError, type WebhookErrorCode } from './errors.ts';
export type { AnyEvent, EventOf } from './event.ts';
export type { EventType, TallyhookEvent } from './events.ts';
export { memoryOrder, type Order, type OrderStore, orderOf, subjectOf } from './order.ts';
export type { PublishedKeys } from './published.ts';
export {
  type Answer,
  type Delivery,
  type Handler,
  makeReceiver,
  type Receiver,
  type ReceiverOptions,
} from './receiver.ts';
export { type Claim, memorySeen, type SeenStore } from './seen.ts';
export type { HeadersInput, Message } from './verify.ts';
