/**
 * The findings of a report. A **break** is an error, or needs a decision by people; a report
 * without breaks is balanced. An **open item** may still resolve by itself, or is informative.
 */
import type { Json } from '../../kernel/values.ts';
import {
  amount,
  count,
  instant,
  json,
  list,
  nullable,
  object,
  oneOf,
  type ShownOf,
  text,
} from '../fields.ts';
import { type DriftFacts, sentenceOf, type Texts } from '../ledger/drift-words.ts';
import { resource, type Shown } from '../resource.ts';

const FREEZE = 'npx tallyhook freeze --reason …';
const DOCTOR = 'npx tallyhook doctor';
const DAMAGED = `stop writes (${FREEZE}), find the change (npx tallyhook verify), restore a backup`;

/** Kinds of break with what to do, most severe first; each names a command. */
export const BREAKS = {
  trial_balance_off: `The ledger does not sum to zero: ${DAMAGED}`,
  numbering_gap: `Batches or transactions are missing: ${DAMAGED}`,
  batch_incomplete: `Rows of a ledger batch are missing: ${DAMAGED}`,
  transaction_unbalanced: `A guard was disabled: ${DAMAGED}`,
  account_off: `The balance is not the sum of its entries: ${DAMAGED}`,
  roll_forward_off: `Opening, movements and closing do not agree: ${DAMAGED}`,
  posting_without_operation: `The operation of this transaction is missing: ${DAMAGED}`,
  posted_too_often: `The operation was posted again: ${DAMAGED}`,
  posting_missing: `A posting of the operation is missing in the ledger: ${DAMAGED}`,
  posted_differently:
    'Compare the operation with its entries (npx tallyhook export operations); if a setting of ' +
    'the ledger changed, set it back',
  reversal_differs: `The reversal does not negate its transaction: ${DAMAGED}`,
  posting_quarantined:
    'Correct the reason, then: npx tallyhook quarantine release <subject> --reason …',
  observation_quarantined:
    'It cannot be processed: correct why, then: npx tallyhook quarantine release <subject> ' +
    '--reason …',
  posting_overdue: `The ledger does not post: see why with ${DOCTOR} and in the log`,
  observed_not_explained:
    'If the next observation agrees it becomes a drift: npx tallyhook drifts list --addr <wallet>',
  wallet_vanished:
    'The service no longer shows the wallet: ask it why. It ends when the wallet is observed ' +
    'again, or when the write that emptied it is reported: npx tallyhook import',
  drift_open:
    'See what is known (npx tallyhook drifts show <subject>), then propose its end: ' +
    'npx tallyhook drifts propose <subject> --reason …; another owner: ' +
    'npx tallyhook drifts approve <subject>',
  outcome_undecided:
    'Ask the service or the parties, then: npx tallyhook decisions propose <subject> executed ' +
    '(or not_executed) --reason …; another owner: npx tallyhook decisions approve <subject>',
  outcome_unknown:
    'The outcome is overdue: poll its wallets (npx tallyhook watch wallet <addr>) or token',
  nft_write_without_end:
    'The chain should have settled it: npx tallyhook watch token <contract> <id> polls it; ' +
    'if a later hash replaced its own: npx tallyhook decisions propose <subject> executed ' +
    '(or not_executed) --reason …; another owner: npx tallyhook decisions approve <subject>',
  token_never_observed:
    'It settled, but its token was not observed: npx tallyhook watch token <contract> <id>',
  nft_missing:
    'The journal of NFTs lacks its burn: poll the token, npx tallyhook watch token <contract> <id>',
  nft_surplus:
    'The journal of NFTs lacks its mint: poll the token, npx tallyhook watch token <contract> <id>',
  nft_owner_differs:
    'The journal of NFTs lacks a transfer: poll the token, npx tallyhook watch token ' +
    '<contract> <id>',
} as const;

/** Kinds of open item with their meaning. */
export const OPEN_ITEMS = {
  write_in_flight: 'The outcome is not overdue: nothing to do',
  posting_due: 'Executed and not yet posted: nothing to do',
  drift_suspected: 'Observed once: a second observation confirms or clears it',
  wallet_inconclusive: 'No observation was conclusive for long: wait until the wallet is quiet',
  wallet_undetermined: 'Too many open operations to find those that the balance includes',
  wallet_stale: 'Not observed for too long: check the polling budget',
  wallet_unopened: 'The opening balance is not yet booked: operations are open on the wallet',
  nft_write_pending: 'The chain has not settled the operation yet',
  nft_change_pending:
    'The journal of NFTs waits for the chain, or for an operation that may explain the change: ' +
    'nothing to do',
  nft_not_booked:
    'Tokens held, but not in the journal of NFTs: an operation that may have minted them is ' +
    'open, or the chain has not completed them',
  write_not_mapped: 'An operation of unknown kind was executed: map its path in the settings',
} as const;

export type FindingKind = keyof typeof BREAKS | keyof typeof OPEN_ITEMS;

/** What to do about each kind. */
export const NEXT: Readonly<Record<FindingKind, string>> = { ...BREAKS, ...OPEN_ITEMS };

/** What to do about a kind, for paper: up to what a command does. */
export function nextOnPaper(kind: FindingKind): string {
  const words = NEXT[kind].replaceAll(/ \([^)]*npx [^)]*\)/g, '');
  const [begin = ''] = words.split(/[^.:;,]*npx /);
  return begin.replace(/(,? then)?[,:; ]*$/, '');
}

const FINDING_KINDS = Object.keys(NEXT) as FindingKind[];

/** True for a break that only a backup ends: the ledger contradicts itself or the operations. */
export function isDamage(kind: FindingKind): boolean {
  return NEXT[kind].includes(DAMAGED);
}

export const finding = resource(
  'Finding',
  {
    kind: oneOf(FINDING_KINDS, undefined, { title: 'Finding' }),
    subject: text('Operation id, drift id, `wallet:<addr>`, `token:<contract>:<id>`, account', {
      title: 'Subject',
    }),
    amount: nullable(amount()),
    since: nullable(instant()),
    age_s: nullable(
      count('From `since` to `as_of` of the report, at least 0', { title: 'Age', unit: 's' }),
    ),
    assignee: nullable(text()),
    evidence: json(),
    next: text('What to do'),
  },
  { columns: ['kind', 'subject', 'amount', 'since', 'age_s', 'assignee'] },
);
export type Finding = Shown<typeof finding>;

export const findingList = {
  total: count('Listed or not'),
  by_kind: list(object({ kind: oneOf(FINDING_KINDS), count: count() })),
  listed: list(object(finding), 'Most severe kinds first'),
};
export type FindingList = ShownOf<typeof findingList>;

/** Sums of evidence as they are computed, from left to right. */
const SUMS =
  'name accounts opening prior_period incoming outgoing fees closing transaction posting ' +
  'expected moved transactions found_transactions entries found_entries sum';
const PLACES = SUMS.split(' ');

/** Evidence with its sums in their order; a stored document has its members in another one. */
export function inOrder(evidence: Json): Json {
  if (evidence === null || typeof evidence !== 'object' || Array.isArray(evidence)) return evidence;
  const placeOf = ([name]: [string, Json]) => PLACES.indexOf(name);
  return Object.fromEntries(
    Object.entries(evidence).toSorted((one, other) => placeOf(one) - placeOf(other)),
  );
}

/** A token whose journal differs from what the service shows. */
interface TokenFacts {
  /** By the service, and by the journal; null when it is not known. */
  owner: string | null;
  booked_owner: string | null;
}

/** What happened, as one sentence, where a finding has one; else null. */
export function wordsOf(
  { kind, subject, amount, evidence }: Finding,
  texts: Texts = {},
): string | null {
  if (kind === 'drift_open') {
    const { wallet, ...facts } = evidence as { wallet: string } & Omit<DriftFacts, 'addr'>;
    return sentenceOf({ ...facts, addr: wallet.replace('wallet:', ''), amount }, texts);
  }
  if (kind === 'wallet_vanished')
    return (
      `The service no longer shows wallet ${subject.replace('wallet:', '')}; ` +
      `by the ledger it holds ${texts.amount && amount ? texts.amount(amount) : amount}.`
    );
  const [, contract, token] = subject.split(':');
  const name = `Token ${token} of contract ${contract}`;
  const { owner, booked_owner: booked } = (evidence ?? {}) as Partial<TokenFacts>;
  const journal = `by the journal ${booked ?? 'an unknown owner'} holds it`;
  if (kind === 'nft_missing') return `${name} no longer exists at the service; ${journal}.`;
  if (kind === 'nft_owner_differs')
    return `${name} belongs to ${owner} at the service; ${journal}.`;
  return kind === 'nft_surplus'
    ? `${name} belongs to ${owner ?? 'an unknown owner'} at the service; ` +
        'by the journal it was burned.'
    : null;
}
