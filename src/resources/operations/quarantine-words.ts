/** What is quarantined, in words of people. Pure. */
import type { QuarantineKind } from './quarantine.ts';

export const QUARANTINE_KIND_WORDS: Record<QuarantineKind, string> = {
  operation: 'posting of an operation',
  posting_request: 'posting of a drift',
  observed_holder: 'holder of a token',
  observation: 'observation',
};

/** Reasons that are codes; others are sentences. */
const REASONS: Record<string, string> = {
  foreign_tx_app_no: 'the answer has the number of another app',
  repeated_tx_log_no: 'another operation has the same number of the service',
};

export function quarantineReasonText(reason: string): string {
  return REASONS[reason] ?? reason;
}
