/** The events of drifts. Pure. */
import { decimalText } from '../../kernel/amounts.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { EventData } from '../../resources/delivery/events.ts';
import type { Drift } from './drift.ts';

type Changed =
  | { type: 'wallet.drift_opened' }
  | { type: 'wallet.drift_assigned'; data: { assignee: string | null; assigned_by: string } }
  | { type: 'wallet.drift_proposed'; data: { proposal: Record<string, unknown> } }
  | { type: 'wallet.drift_closed'; data: { how: string; closed_by: { [key: string]: Json } } }
  | { type: 'wallet.drift_reversed'; data: { operation_id: string } };

export function driftEvent(drift: Drift, changed: Changed, occurredAt: Instant): EventDraft {
  const { type, data = {} } = { data: {}, ...changed };
  return {
    type,
    subject: `wallet:${drift.walletKey}`,
    occurredAt,
    data: { ...driftFields(drift), ...data },
  } as EventDraft;
}

function driftFields(drift: Drift): EventData<'wallet.drift_opened'> {
  return {
    addr: drift.addr,
    drift_id: drift.id,
    amount: drift.amount === null ? null : decimalText(drift.amount),
    amount_min: decimalText(drift.min),
    amount_max: decimalText(drift.max),
    window_from: drift.windowFrom === null ? null : isoText(drift.windowFrom),
    window_to: isoText(drift.windowTo),
    evidence: drift.evidence as Record<string, unknown>,
    cause: drift.cause,
    counterpart: drift.counterpart,
  };
}
