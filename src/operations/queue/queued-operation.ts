/** A write as it stands right after it was queued, without asking the database for it. Pure. */
import type { Instant } from '../../kernel/clock.ts';
import type { Intent } from '../intake/store.ts';
import type { Operation } from '../operation.ts';

/** What `findOperation` answers for an intent that was recorded in `queued` at that instant. */
export function queuedOperation(intent: Intent, recordedAt: Instant): Operation {
  const { id, kind, owner, idempotencyKey, reference, preImage, expiresAt, fields } = intent;
  return {
    ...{ id, kind, state: 'queued', outcome: 'open', source: 'gateway', owner },
    ...{ idempotencyKey, reference, preImage, expiresAt, recordedAt },
    fromAddr: fields.fromAddr ?? null,
    toAddr: fields.toAddr ?? null,
    operationNo: fields.operationNo ?? null,
    contractId: fields.contractId ?? null,
    tokenId: fields.tokenId ?? null,
    amount: fields.amount ?? null,
    feeAmount: fields.feeAmount ?? null,
    reasonType: fields.reasonType ?? null,
    tokenUri: fields.tokenUri ?? null,
    metaData: fields.metaData ?? null,
    extraData: fields.extraData ?? null,
    ...{ txAppNo: null, txLogNo: null, txHash: null },
    ...{ errorClass: null, errorStatus: null, errorCode: null, errorMessage: null },
    ...{ evidence: null, sentAt: null, sendDeadlineAt: null, answeredAt: null },
    ...{ effectiveAt: null, effectiveBasis: null, settledAt: null },
    ...{ ambiguous: false, inLedger: false },
  };
}
