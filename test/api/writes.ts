/** Writes as the gateway records them, for tests that read them back. */
import type { Conclusion, NewWrite } from '../../src/operations/operations.ts';

export const ADDR_A = `0x${'aB'.repeat(20)}`;
export const ADDR_B = `0x${'cD'.repeat(20)}`;
export const HASH = `0x${'e1'.repeat(32)}`;

/** A transfer from A to B, changed as asked. */
export function aWrite(
  change: Partial<Omit<NewWrite, 'fields'>> & { fields?: NewWrite['fields'] } = {},
): NewWrite {
  const { fields, ...rest } = change;
  return {
    kind: 'transfer',
    owner: 'shop',
    keyId: 'key_of_shop',
    idempotencyKey: null,
    fingerprint: 'f'.repeat(64),
    reference: null,
    method: 'POST',
    path: '/v1/app/token/transfer',
    contentType: 'application/json',
    body: new Uint8Array(),
    preImage: null,
    sendWithinMs: 30_000,
    expiresAt: null,
    queue: false,
    dayLimit: null,
    ...rest,
    fields: { fromAddr: ADDR_A, toAddr: ADDR_B, amount: 100n, feeAmount: 1n, ...fields },
  };
}

/** The answer of the service that accepts a write. */
export function accepted(operationId: string, txLogNo: bigint, endedAt: number): Conclusion {
  const outcome = { class: 'accepted', txAppNo: 7n, txLogNo } as Conclusion['outcome'];
  return { operationId, outcome, answer: undefined, endedAt };
}

/** The loss of the answer. */
export function lost(operationId: string, endedAt: number): Conclusion {
  const outcome = { class: 'unknown', cause: 'timeout' } as Conclusion['outcome'];
  return { operationId, outcome, answer: undefined, endedAt };
}
