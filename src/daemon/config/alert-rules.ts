/** The schema of `alerts.rules`. Pure. */
import { z } from 'zod';
import { DAY_MS } from '../../kernel/clock.ts';

const ageMs = z
  .number()
  .int()
  .min(1)
  .max(400 * DAY_MS);
const amount = z.union([
  z.int().min(0),
  z.string().regex(/^\d{1,100}$/, 'must be a whole number as text'),
]);
const ruleName = z.string().regex(/^[a-z][a-z0-9_-]{0,62}$/, 'must be like operator-low');
const ruleOfWallet = {
  name: ruleName,
  wallet: z.string().refine((text) => /^operator:\d+$/.test(text) || text.length === 42, {
    error: 'must be an address of 42 characters, or operator:<number>',
  }),
  amount,
};
const rule = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('wallet_below'), ...ruleOfWallet }),
  z.strictObject({ kind: z.literal('wallet_above'), ...ruleOfWallet }),
  z.strictObject({ kind: z.literal('unknown_older'), name: ruleName, age_ms: ageMs }),
  z.strictObject({ kind: z.literal('drift_above'), name: ruleName, amount }),
]);

function hasDistinctNames(rules: readonly { name: string }[]): boolean {
  return new Set(rules.map(({ name }) => name)).size === rules.length;
}

export const alertRules = z
  .array(rule)
  .max(1_000)
  .refine(hasDistinctNames, 'two rules have one name');

/** A rule can only be about an operator whose wallet is known. */
export function refuseUnknownOperators(
  settings: {
    alerts: { rules: z.output<typeof alertRules> };
    ledger: { operators: Record<string, string> };
  },
  context: { addIssue(issue: { code: 'custom'; path: PropertyKey[]; message: string }): void },
): void {
  for (const [n, one] of settings.alerts.rules.entries()) {
    const no = 'wallet' in one ? /^operator:(\d+)$/.exec(one.wallet)?.[1] : undefined;
    if (no === undefined || settings.ledger.operators[no] !== undefined) continue;
    const message =
      'must be an operator with an address in ledger.operators, or an address, such as that of ' +
      'an operator that two owners mapped';
    context.addIssue({ code: 'custom', path: ['alerts', 'rules', n, 'wallet'], message });
  }
}
