/** Findings in words of people. Pure. */
import { type DriftFacts, sentenceOf } from '../ledger/drift-words.ts';
import type { Finding } from './finding.ts';

/** A token whose journal differs from what the service shows. */
interface TokenFacts {
  /** By the service, and by the journal; null when it is not known. */
  owner: string | null;
  booked_owner: string | null;
}

/** What happened, as one sentence, where a finding has one; else null. */
export function wordsOf(
  { kind, subject, amount, evidence }: Finding,
  timeText?: (iso: string) => string,
): string | null {
  if (kind === 'drift_open') {
    const { wallet, ...facts } = evidence as { wallet: string } & Omit<DriftFacts, 'addr'>;
    return sentenceOf(
      { ...facts, addr: wallet.replace('wallet:', ''), amount },
      timeText && { time: timeText },
    );
  }
  if (kind === 'wallet_vanished')
    return (
      `The service no longer shows wallet ${subject.replace('wallet:', '')}; ` +
      `by the ledger it holds ${amount}.`
    );
  const [, contract, token] = subject.split(':');
  const name = `Token ${token} of contract ${contract}`;
  const { owner, booked_owner: booked } = (evidence ?? {}) as Partial<TokenFacts>;
  const journal = `by the journal ${booked ?? 'somebody'} holds it`;
  if (kind === 'nft_missing') return `${name} no longer exists at the service; ${journal}.`;
  if (kind === 'nft_owner_differs')
    return `${name} belongs to ${owner} at the service; ${journal}.`;
  return kind === 'nft_surplus'
    ? `${name} belongs to ${owner ?? 'somebody'} at the service; by the journal it was burned.`
    : null;
}
