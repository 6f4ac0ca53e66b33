/** What other folders use of decisions: proposals and approvals, about operations and drifts. */
export { countProposed } from './proposed-store.ts';
export { assertDecidable, type DecidedOutcome } from './rule.ts';
export { type Decisions, decisionEvidence, makeDecisions } from './service.ts';
export { type Decision, listDecisions, lockOperation, newestDecisions } from './store.ts';
export {
  approve,
  approversOf,
  type ExpectedProposal,
  isApproved,
  type Person,
  propose,
  withApproval,
} from './two-owners.ts';
