/** What cannot be posted or processed until a person releases it. */
import { amount, digits, instant, nullable, oneOf, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const QUARANTINE_KINDS = [
  'operation',
  'posting_request',
  'observed_holder',
  'observation',
] as const;
export type QuarantineKind = (typeof QUARANTINE_KINDS)[number];

/** Operations and posting requests have ids; an observation is named by its target. */
const subject = {
  kind: oneOf(QUARANTINE_KINDS, undefined, { title: 'What' }),
  id: text('The id of the operation or posting request, or the target of the observation', {
    title: 'Of',
  }),
};

export const quarantined = resource(
  'Quarantined',
  {
    ...subject,
    reason: text('Why it is quarantined', { title: 'Why' }),
    since: instant('Of a posting request, when it was requested'),
    amount: nullable(amount('What is not posted; null for an observation or an NFT write')),
  },
  { columns: ['since', 'kind', 'id', 'amount', 'reason'] },
);

export const release = resource(
  'Release',
  {
    n: digits('Releases are numbered in their order'),
    ...subject,
    problem: text('Why it was quarantined', { title: 'Was quarantined for' }),
    released_at: instant(undefined, { title: 'Released' }),
    released_by: text(undefined, { title: 'By' }),
    reason: text(),
  },
  { columns: ['kind', 'id', 'problem', 'released_at', 'released_by', 'reason'] },
);

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
