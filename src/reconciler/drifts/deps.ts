/** What people's work on drifts is given, and what one transaction of it works with. */
import type { Db, Tx } from '../../db/connect.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import type { EffectSettings, Operations, Person } from '../../operations/operations.ts';
import type { Outbox } from '../../outbox/outbox.ts';

export interface DriftDeps {
  db: Db;
  clock: Clock;
  outbox: Outbox;
  operations: Pick<Operations, 'move'>;
  effectSettings: EffectSettings;
  /** Larger amounts need two approvals; undefined: none does. */
  secondApproverAbove?: bigint | undefined;
}

export interface Step {
  tx: Tx;
  by: Person;
  now: Instant;
}
