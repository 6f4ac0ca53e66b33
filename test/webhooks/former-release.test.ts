/** What a daemon of release 0.2.0 claims on the database of this program, by its own statement. */
import { expect, it } from 'vitest';
import { asJson } from '../../src/db/connect.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { FIRST_UUID, uuidOf } from '../../src/kernel/ids.ts';
import { useRig, walletEvent } from './rig.ts';

const rig = useRig();
interface Claimed {
  deliveries: [id: string, createdAt: number, endpointId: string, eventId: string][];
  bodies: Record<string, string>;
  /** Endpoints that it sees. */
  active: string[];
}

async function claimAsFormer(...endpointIds: string[]): Promise<Claimed> {
  const { sql } = rig.database.db;
  const now = rig.clock.now();
  const later = isoText(now + 60_000);
  const quotas = endpointIds.sort().map((id) => ({
    endpoint_id: uuidOf(id),
    n: 10,
    exclusive: false,
    failures: 0,
    rate_per_s: null,
    rate_used_until: null,
    rate_until: null,
  }));
  const rows = await sql<Record<'deliveries' | 'bodies' | 'active', string | null>[]>`
    select endpoints, deliveries, bodies, deferred, active, next, resting, resumes_at
    from tallyhook.claim_deliveries(${asJson(quotas)}::jsonb, null::uuid[],
      ${FIRST_UUID}, 100, ${isoText(now)}, ${later}, 256, ${later})`;
  const { deliveries, bodies, active } = rows[0] ?? {};
  return {
    deliveries: JSON.parse(deliveries ?? '[]'),
    bodies: JSON.parse(bodies ?? '{}'),
    active: JSON.parse(active ?? '[]').map(({ endpointId }: { endpointId: string }) => endpointId),
  };
}

const oauth2 = () => ({
  tokenUrl: `${rig.receiver.url}/token`,
  clientId: 'client',
  clientSecret: 'secret',
});

it('A daemon of release 0.2.0 gets the bodies of events by their ids', async () => {
  const { endpoint } = await rig.subscribe();
  const [event = ''] = await rig.emit(walletEvent());
  const { deliveries, bodies, active } = await claimAsFormer(endpoint.id);
  expect(active).toEqual([endpoint.id]);
  expect(deliveries.map(([, , endpointId, eventId]) => [endpointId, eventId])).toEqual([
    [endpoint.id, event],
  ]);
  expect(JSON.parse(bodies[event] ?? '')).toMatchObject({ id: event, type: walletEvent().type });
});

it('A daemon of release 0.2.0 leaves to others what it cannot authenticate', async () => {
  const { endpoint: plain } = await rig.subscribe('/plain');
  // Known to it from before.
  const { endpoint } = await rig.subscribe('/hook');
  await rig.webhooks.updateEndpoint(endpoint.id, { auth: { oauth2: oauth2() } });
  await rig.emit(walletEvent());
  const { deliveries, active } = await claimAsFormer(plain.id, endpoint.id);
  expect(active).toEqual([plain.id]);
  expect(deliveries.map(([, , endpointId]) => endpointId)).toEqual([plain.id]);
});

it('A daemon of release 0.2.0 leaves to others what a person asked for during a pause', async () => {
  const { endpoint } = await rig.subscribe();
  await rig.emit(walletEvent());
  const until = isoText(rig.clock.now() + 60_000);
  await rig.database.db.sql`
    update tallyhook.endpoint_health set paused_until = ${until}, probe_requested = true
    where endpoint_id = ${endpoint.id}`;
  const { deliveries, active } = await claimAsFormer(endpoint.id);
  expect([active, deliveries]).toEqual([[], []]);
});
