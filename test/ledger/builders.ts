/** Operations as values, for rules that need no database. */
import type { EffectSettings, Operation } from '../../src/operations/operations.ts';

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
    id: 'op_1',
    kind: 'give',
    state: 'accepted',
    outcome: 'executed',
    source: 'gateway',
    owner: 'app',
    idempotencyKey: null,
    reference: null,
    fromAddr: null,
    toAddr: null,
    operationNo: null,
    contractId: null,
    tokenId: null,
    amount: null,
    feeAmount: null,
    reasonType: null,
    tokenUri: null,
    metaData: null,
    extraData: null,
    txAppNo: null,
    txLogNo: null,
    txHash: null,
    errorClass: null,
    errorStatus: null,
    errorCode: null,
    errorMessage: null,
    preImage: null,
    evidence: null,
    recordedAt: START,
    sentAt: null,
    sendDeadlineAt: null,
    answeredAt: null,
    answerStatus: null,
    effectiveAt: null,
    effectiveBasis: null,
    settledAt: null,
    expiresAt: null,
    ambiguous: false,
    inLedger: true,
    ...fields,
  };
}
