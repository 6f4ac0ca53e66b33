/** What later stages recorded about one operation. */
import { delivery } from '../delivery/delivery.ts';
import {
  address,
  amount,
  digits,
  id,
  instant,
  list,
  nullable,
  object,
  oneOf,
  only,
  text,
} from '../fields.ts';
import { resource } from '../resource.ts';

/** The greatest number of each part. */
export const PART_MAX = 20;

export const timeline = resource('OperationTimeline', {
  observations: list(
    object({
      id: id('obs'),
      target: text(),
      unchanged_since: instant(),
      started_at: instant(),
      ended_at: instant(),
      result: oneOf(['seen', 'absent', 'inconclusive']),
      balance: nullable(amount('Of a wallet')),
      owner: nullable(text('Of a token')),
    }),
    'Of each wallet and token of the operation: the last one before it was sent, and the ' +
      `first ${PART_MAX} until it settled, in the order of time`,
  ),
  postings: list(
    object({
      transaction_id: digits(),
      kind: text(),
      reverses: nullable(digits()),
      recorded_at: instant(),
      entries: list(object({ account: text(), amount: amount() })),
    }),
    `The newest ${PART_MAX} transactions of the ledger`,
  ),
  movements: list(
    object({
      kind: text(),
      from_addr: nullable(address()),
      to_addr: nullable(address()),
      recorded_at: instant(),
    }),
  ),
  events: list(
    object({
      id: id('evt'),
      type: text(),
      recorded_at: instant(),
      deliveries: list(
        object(
          only(
            delivery.fields,
            'id',
            'endpoint_id',
            'state',
            'attempts',
            'created_at',
            'finished_at',
          ),
        ),
      ),
    }),
    `The first ${PART_MAX} events of its changes of state that retention has left, ` +
      `each with its newest ${PART_MAX} deliveries`,
  ),
});
