/** Reports of writes made elsewhere, as their reporters send them. */
import { systemClock } from '../../src/kernel/clock.ts';
import { ADDR_A, ADDR_B } from './writes.ts';

let next = 9_007_199_254_740_993n;

/** A number of the service that no other report has. */
export function nextNumber(): bigint {
  return next++;
}

export const iso = (at: number) => new Date(at).toISOString();

/** A give of 10 from two hours ago, under a number of its own. */
export const aGive = (change: object = {}) => ({
  kind: 'give',
  tx_app_no: '7',
  tx_log_no: String(nextNumber()),
  occurred_at: iso(systemClock.now() - 7_200_000),
  to_addr: ADDR_A,
  operation_no: '1',
  amount: '10',
  ...change,
});
/** A transfer of 100 of now, under a number of its own. */
export const aTransfer = (change: object = {}) => ({
  kind: 'transfer',
  tx_app_no: '7',
  tx_log_no: String(nextNumber()),
  occurred_at: iso(systemClock.now()),
  from_addr: ADDR_A,
  to_addr: ADDR_B,
  amount: '100',
  fee_amount: '1',
  ...change,
});
