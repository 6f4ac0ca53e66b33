/** How the minutes of attempts are deleted. */
import { expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { deleteAttemptMinutes } from '../../src/webhooks/webhooks.ts';
import { useRig } from './rig.ts';

const rig = useRig();
/** Rows that are deleted at once. */
const DELETED_MAX = 10_000;

it('One deletion of minutes is bounded, also of one minute with many event types', async () => {
  const { db } = rig.database;
  const now = rig.clock.now();
  await db.sql`
    insert into tallyhook.attempt_figures (endpoint_id, at, event_type, delivered, failed,
      duration_ms, slowest_ms, latencies)
    select '', ${isoText(now - 60_000)}::timestamptz, 'type.' || n, 1, 0, 1, 1, '{1}'
    from generate_series(1, ${DELETED_MAX + 2}) n`;
  expect(await deleteAttemptMinutes(db, now)).toBe(DELETED_MAX);
  expect(await deleteAttemptMinutes(db, now)).toBe(2);
  expect(await deleteAttemptMinutes(db, now)).toBe(0);
});
