/**
 * Announces that other fee rules are applied, as one event with the drifts that they probably
 * explain. Each of these drifts ends when the next observation of its wallet shows it no more.
 */
import { isoText } from '../../kernel/clock.ts';
import type { AnnounceFeeRules } from '../../ledger/ledger.ts';
import { expedite } from '../../observer/observer.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { listDrifts } from './drift.ts';

const DRIFTS_MAX = 100;

export function feeRuleAnnouncement(outbox: Outbox): AnnounceFeeRules {
  return async (tx, { rules, setAt, changed, reposted }, now) => {
    const filter = { state: 'unclosed', cause: 'fee_rule' } as const;
    const drifts = await listDrifts(tx, filter, { limit: DRIFTS_MAX });
    await expedite(tx, new Map(drifts.map(({ walletKey }) => [`wallet:${walletKey}`, now])));
    const changes = rules.feeChanges ?? [];
    await outbox.emit(tx, [
      {
        type: 'ledger.fee_rule_applied',
        subject: 'ledger:fee_rule',
        occurredAt: now,
        data: {
          rules: [
            { from: null, mode: rules.feeMode },
            ...changes.map(({ from, mode }) => ({ from: isoText(from), mode })),
          ],
          set_at: isoText(setAt),
          changed: Number(changed),
          reposted: Number(reposted),
          drifts: drifts.map(({ id }) => id),
        },
      },
    ]);
  };
}
