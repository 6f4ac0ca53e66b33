/** Sections 2.7, 4.4 row 6 and the maintenance states of section 3. */
import { checkToken, dataOf, listTokens, maintenance, obtain } from '../client/endpoints.ts';
import type { JsonField } from '../client/reply.ts';
import type { Service } from '../client/service.ts';
import { ensure, equal, type Statement, statement } from '../statement.ts';

const MESSAGE = 'Database upgrade';

const ANNOUNCED = {
  state: 'announced',
  start_in_ms: 3_600_000,
  duration_ms: 600_000,
  message: MESSAGE,
};
const BEGUN = { state: 'on', duration_ms: 600_000, message: MESSAGE };

async function record(service: Service): Promise<JsonField> {
  return dataOf(await maintenance(service));
}

const during = (service: Service, change: object, work: () => Promise<void>) =>
  service.control.withMaintenance(change, work);

function nullOr(place: JsonField, name: string, check: () => void): void {
  const member = place.at(name);
  ensure(member.present, `${name} should be present, null or not; received: ${place.summary}`);
  if (!member.isNull) check();
}

const RECORD: Statement[] = [
  statement('2.7', 'status is a string: READY, ACTIVE or INACTIVE', async (service) => {
    const place = await record(service);
    const known = ['READY', 'ACTIVE', 'INACTIVE'].includes(place.text('status'));
    ensure(known, `status should be READY, ACTIVE or INACTIVE; received: ${place.summary}`);
  }),
  ...['start', 'end'].flatMap((name) => [
    statement('2.7', `${name} may be null`, async (service) => {
      const place = await record(service);
      nullOr(place, name, () => place.time(name));
    }),
    statement('2.7', `${name} is a string yyyy-MM-dd HH:mm:ss`, async (service) =>
      during(service, ANNOUNCED, async () => void (await record(service)).time(name)),
    ),
  ]),
  statement('2.7', 'message may be null', async (service) => {
    const place = await record(service);
    nullOr(place, 'message', () => place.text('message'));
  }),
  statement('2.7', 'message is a string', (service) =>
    during(service, ANNOUNCED, async () => {
      equal('message', (await record(service)).text('message'), MESSAGE);
    }),
  ),
  statement('2.7', 'Null start, end and message appear with ACTIVE', async (service) => {
    const place = await record(service);
    if (place.text('status') !== 'ACTIVE') return;
    for (const name of ['start', 'end', 'message']) {
      ensure(
        place.at(name).isNull,
        `${name} should be null with ACTIVE; received: ${place.summary}`,
      );
    }
  }),
  statement('2.7', 'READY means maintenance is announced and not yet begun', (service) =>
    during(service, ANNOUNCED, async () => {
      equal('status', (await record(service)).text('status'), 'READY');
      dataOf(await listTokens(service));
    }),
  ),
  statement('2.7', 'INACTIVE means the service is currently down for maintenance', (service) =>
    during(service, BEGUN, async () => {
      equal('status', (await record(service)).text('status'), 'INACTIVE');
      equal('the HTTP code of a read', (await listTokens(service)).status, 503);
    }),
  ),
  statement('2.7', 'ACTIVE means normal operation', async (service) => {
    const { controlled } = service;
    const place = await record(service);
    if (controlled) equal('status', place.text('status'), 'ACTIVE');
    if (place.text('status') === 'ACTIVE') dataOf(await listTokens(service));
  }),
];

const STATES: Statement[] = [
  ...(
    [
      ['READY', ANNOUNCED],
      ['INACTIVE', BEGUN],
    ] as const
  ).map(([status, change]) =>
    statement('3', `Maintenance status has the state ${status}`, (service) =>
      during(service, change, async () =>
        equal('status', (await record(service)).text('status'), status),
      ),
    ),
  ),
  statement('3', 'Maintenance status has the state ACTIVE after maintenance', async (service) => {
    await during(service, BEGUN, async () => {});
    equal('status', (await record(service)).text('status'), 'ACTIVE');
  }),
];

const ENDPOINT: Statement[] = [
  statement('4.4', 'GET /v1/system/maintenance answers without credentials', async (service) => {
    equal('the HTTP code', (await maintenance(service)).status, 200);
  }),
  statement('4.4', 'The maintenance answer is {status: integer, data: record}', async (service) => {
    const { top } = await maintenance(service);
    top.integer('status');
    top.object('data').text('status');
  }),
  statement('4.4', 'The maintenance status can be read during maintenance', (service) =>
    during(service, BEGUN, async () => {
      const reply = await maintenance(service);
      equal('the HTTP code', reply.status, 200);
      reply.top.object('data').time('start');
    }),
  ),
  statement('7.3', 'HTTP 503: system under maintenance (token)', (service) =>
    during(service, BEGUN, async () => {
      const reply = await obtain(service, { grant_type: 'client_credentials' });
      equal('the HTTP code', reply.status, 503);
    }),
  ),
  statement('7.3', 'HTTP 503: system under maintenance (check_token)', async (service) => {
    const token = await service.clientToken();
    await during(service, BEGUN, async () =>
      equal('the HTTP code', (await checkToken(service, token)).status, 503),
    );
  }),
];

export const MAINTENANCE: Statement[] = [...RECORD, ...STATES, ...ENDPOINT];
