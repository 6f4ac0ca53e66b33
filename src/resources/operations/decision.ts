/** What two owners decide: an operation's outcome, how a drift ends, an operator's wallet. */
import { address, count, id, instant, list, nullable, object, oneOf, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const OUTCOMES = ['executed', 'not_executed'] as const;

/** `book` posts the difference, `link` names what explains it, `dismiss` posts nothing. */
export const PROPOSALS = ['book', 'link', 'dismiss'] as const;
export type ProposalKind = (typeof PROPOSALS)[number];

const proposal = {
  n: count('Number of the proposal about its subject, from 1; the newest counts'),
  reason: text('Why, as the proposer wrote it'),
  proposed_by: text('Owner of the key that proposed it'),
  proposed_at: instant('When it was proposed'),
  approvals_needed: count(
    'How many other owners must approve it: 1, or 2 above `decisions.second_approver_above`',
  ),
  approvals: list(object({ owner: text(), at: instant() })),
  approved_by: nullable(
    text(
      'Owners of the keys that approved it, never its proposer; null until it has all ' +
        'approvals',
    ),
  ),
  approved_at: nullable(instant()),
};

export const decision = resource('Decision', { ...proposal, outcome: oneOf(OUTCOMES) });

export const driftProposal = resource('DriftProposal', {
  ...proposal,
  kind: oneOf(PROPOSALS),
  operation_id: nullable(id('op')),
});

/** A mapping is in force once it is approved, and ends only by being rejected before. */
const MAPPING_STATES = ['proposed', 'active', 'rejected'] as const;

export const operatorProposal = resource('OperatorProposal', {
  ...proposal,
  addr: address('The wallet that the operator pays from'),
  state: oneOf(MAPPING_STATES),
  rejected_by: nullable(text('Owner of the key that rejected it; of the proposer: withdrew it')),
  rejected_at: nullable(instant()),
  reject_reason: nullable(text('Why, as that person wrote it')),
});
