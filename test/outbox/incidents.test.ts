/** Incidents in the log, from the events that were numbered. */
import { expect, it } from 'vitest';
import { makePartitions } from '../../src/db/partitions.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import { makeIncidentLog } from '../../src/outbox/outbox.ts';
import { useDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { draft, numberAll, openOutbox } from './rig.ts';

const clock = manualClock(Date.UTC(2026, 0, 10));
const database = await useDatabase();

it('Each incident is logged once by one of several daemons, without the URL of an endpoint', async () => {
  await makePartitions(database.db, clock.now());
  const { emitDrafts } = openOutbox(database.db, clock);
  const lines: string[] = [];
  const log = makeLog('info', { write: (line) => void lines.push(line) });
  const daemons = [1, 2, 3].map(() => makeIncidentLog(database.db, log));
  const run = () => Promise.all(daemons.map((one) => one()));
  const url = 'https://example.com/hush';
  const disabled = (id: string) =>
    draft(id, { type: 'endpoint.disabled', data: { endpoint_id: id, reason: 'gone', url } });
  await emitDrafts(disabled('before'));
  await numberAll(database.db);
  await run();
  expect(lines).toEqual([]);

  const maintenance = {
    service: 'upstream',
    previous: 'active',
    current: 'maintenance',
    start: null,
    start_text: null,
    end: '2026-01-10T02:00:00Z',
    end_text: null,
    message: 'an upgrade',
  } as const;
  const drift = {
    drift_id: 'drf_1',
    addr: '0x1',
    amount: '-5',
    amount_min: '-5',
    amount_max: '-5',
    cause: 'made_elsewhere' as const,
    counterpart: null,
  };
  const window = { window_from: null, window_to: '2026-01-10T00:00:00Z', evidence: {} };
  await emitDrafts(
    disabled('ep_1'),
    draft('no incident'),
    draft('service', { type: 'service.maintenance_started', data: maintenance }),
    draft('0x1', { type: 'wallet.drift_opened', data: { ...drift, ...window } }),
  );
  await numberAll(database.db);
  await run();
  await run();
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'warn', msg: 'endpoint.disabled', endpoint_id: 'ep_1', reason: 'gone' },
    { msg: 'service.maintenance_started', current: 'maintenance', end: '2026-01-10T02:00:00Z' },
    { msg: 'wallet.drift_opened', drift_id: 'drf_1', addr: '0x1', amount: '-5' },
  ]);
  expect(lines.join('')).not.toContain('hush');
  for (const line of lines) expect(JSON.parse(line).event_id).toMatch(/^evt_/);
});

it('Of many incidents of one type in a minute ten are logged, and the others counted after it', async () => {
  const { emitDrafts } = openOutbox(database.db, clock);
  const lines: string[] = [];
  const log = makeLog('info', { write: (line) => void lines.push(line) });
  let nowMs = 0;
  const run = makeIncidentLog(database.db, log, () => nowMs);
  const disabled = (n: number) => {
    const data = { endpoint_id: `ep_${n}`, reason: 'gone', url: 'https://example.com/' };
    return draft(`many ${n}`, { type: 'endpoint.disabled', data });
  };
  const happens = async (from: number, to: number) => {
    await emitDrafts(...Array.from({ length: to - from }, (_, n) => disabled(from + n)));
    await numberAll(database.db);
    await run();
  };
  await run();
  await happens(0, 8);
  nowMs = 59_999;
  await happens(8, 25);
  expect(lines).toHaveLength(10);
  nowMs = 60_000;
  await happens(25, 26);
  const [more, last] = lines.slice(10).map((line) => JSON.parse(line));
  expect(more).toMatchObject({
    level: 'warn',
    msg: 'endpoint.disabled: more in the last minute',
    more: 15,
  });
  expect(last).toMatchObject({ msg: 'endpoint.disabled', endpoint_id: 'ep_25' });
  nowMs = 120_000;
  await run();
  expect(lines).toHaveLength(12);
});
