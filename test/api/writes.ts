/** Operations as the gateway records them, answers of the service, and reports of operations. */
import { systemClock } from '../../src/kernel/clock.ts';
import type { Conclusion, NewWrite } from '../../src/operations/operations.ts';
import { writeOf } from '../ledger/builders.ts';

export const ADDR_A = `0x${'aB'.repeat(20)}`;
export const ADDR_B = `0x${'cD'.repeat(20)}`;
export const HASH = `0x${'e1'.repeat(32)}`;

/** A transfer of 100 and a fee of 1 from A to B. */
export function aWrite(change: Partial<NewWrite> = {}): NewWrite {
  return writeOf({
    kind: 'transfer',
    owner: 'shop',
    keyId: 'key_of_shop',
    path: '/v1/app/token/transfer',
    ...change,
    fields: { fromAddr: ADDR_A, toAddr: ADDR_B, amount: 100n, feeAmount: 1n, ...change.fields },
  });
}

export function accepted(operationId: string, txLogNo: bigint, endedAt: number): Conclusion {
  const outcome = { class: 'accepted', txAppNo: 7n, txLogNo } as Conclusion['outcome'];
  return { operationId, outcome, answer: undefined, endedAt };
}

export function answerLost(operationId: string, endedAt: number): Conclusion {
  const outcome = { class: 'unknown', cause: 'timeout' } as Conclusion['outcome'];
  return { operationId, outcome, answer: undefined, endedAt };
}

let next = 9_007_199_254_740_993n;

/** A tx_log_no that is used once. */
export function nextNumber(): bigint {
  return next++;
}

export const iso = (at: number) => new Date(at).toISOString();

/** The report of a give of 10, two hours ago. */
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
/** The report of a transfer of 100, now. */
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
