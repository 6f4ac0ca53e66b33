/** Operations as values, for rules that need no database. */
import {
  type EffectSettings,
  type NewWrite,
  NO_FIELDS,
  newOperation,
  type Operation,
  type Report,
  type WriteFields,
} from '../../src/operations/operations.ts';

export const START = Date.UTC(2026, 0, 1);
/** Fees on top, and no wallets of our own. */
export const PLAIN: EffectSettings = { feeMode: 'on_top', operators: new Map() };

/** The nth wallet address; 42 characters. */
export function addr(n: number | string): string {
  return `0xAbCd${String(n).padStart(36, '0')}`;
}

/** A whole operation, accepted, with the fields that the test names. */
export function operation(fields: Partial<Operation>): Operation {
  return {
    ...newOperation({
      id: 'op_1',
      kind: 'give',
      state: 'accepted',
      source: 'gateway',
      owner: 'app',
      recordedAt: START,
    }),
    outcome: 'executed',
    inLedger: true,
    ...fields,
  };
}

/** A write made elsewhere, with the fields that the test names. */
export function reportOf({
  fields,
  ...more
}: Partial<Omit<Report, 'fields'>> & { fields: WriteFields }): Report {
  return {
    kind: 'give',
    txAppNo: null,
    txLogNo: null,
    txHash: null,
    occurredAt: START,
    reference: null,
    operationId: null,
    distinct: true,
    body: '{}',
    ...more,
    fields: { ...NO_FIELDS, ...fields },
  };
}

/** A write as the gateway asks for it, with what the test names. */
export function writeOf(more: Partial<NewWrite>): NewWrite {
  return {
    kind: 'give',
    fields: {},
    owner: 'app',
    keyId: 'key_1',
    idempotencyKey: null,
    fingerprint: 'f',
    reference: null,
    method: 'POST',
    path: '/v1/app/token/operations/1/give',
    contentType: 'application/json',
    body: Buffer.from('{"amount":10}'),
    preImage: null,
    sendWithinMs: 30_000,
    expiresAt: null,
    queue: false,
    dayLimit: null,
    ...more,
  };
}
