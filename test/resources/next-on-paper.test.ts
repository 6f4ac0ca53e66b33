/** What a printed report says is to be done, which names no command. */
import { describe, expect, it } from 'vitest';
import { type FindingKind, NEXT, nextOnPaper } from '../../src/resources/reports/finding.ts';

describe('What is to be done', () => {
  it.each(Object.keys(NEXT) as FindingKind[])('about %s is said without a command', (kind) => {
    expect(nextOnPaper(kind)).toMatch(/^[A-Z].{10,}[a-z]$/);
    expect(nextOnPaper(kind)).not.toMatch(/npx|[<>()…]|,\s*$/);
  });

  it.each([
    ['drift_open', 'See what is known, then propose its end'],
    ['posting_quarantined', 'Correct the reason'],
    ['posting_overdue', 'The ledger does not post'],
    ['nft_missing', 'The journal of NFTs lacks its burn: poll the token'],
    ['outcome_unknown', 'The outcome is overdue: poll its wallets or token'],
  ] as const)('of %s reads: %s', (kind, words) => {
    expect(nextOnPaper(kind)).toBe(words);
  });
});
