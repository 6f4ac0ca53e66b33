/** Sections 2.5 and 2.6: the access token record of each grant, and the token check record. */
import { checkToken, obtain } from '../client/endpoints.ts';
import type { JsonField } from '../client/reply.ts';
import { clientOf, type Service } from '../client/service.ts';
import { type Grant, granted } from '../client/shared-replies.ts';
import { ensure, equal, type Statement, statement } from '../statement.ts';

const TYPES = { string: 'a string', integer: 'an integer', boolean: 'a boolean' };
const GRANTS: Grant[] = ['client_credentials', 'authorization_code', 'refresh_token'];
const USER_GRANTS: Grant[] = ['authorization_code', 'refresh_token'];

const FIELDS: [name: string, type: 'string' | 'integer', presentFor: Grant[]][] = [
  ['access_token', 'string', GRANTS],
  ['token_type', 'string', GRANTS],
  ['refresh_token', 'string', USER_GRANTS],
  ['expires_in', 'integer', GRANTS],
  ['scope', 'string', USER_GRANTS],
  ['app_no', 'integer', GRANTS],
  ['member_no', 'integer', USER_GRANTS],
  ['nickname', 'string', USER_GRANTS],
];

/** The token check record of a user token. */
async function userCheck(service: Service): Promise<JsonField> {
  const { access } = await service.user();
  return (await checkToken(service, access)).record;
}

const CHECKED: [name: string, type: 'string' | 'integer' | 'boolean'][] = [
  ['grant_type', 'string'],
  ['member_no', 'integer'],
  ['scope', 'string'],
  ['nickname', 'string'],
  ['active', 'boolean'],
  ['app_no', 'integer'],
  ['exp', 'integer'],
  ['client_id', 'string'],
];

function typed(record: JsonField, name: string, type: 'string' | 'integer' | 'boolean'): void {
  if (type === 'string') record.text(name);
  else if (type === 'integer') record.integer(name);
  else record.flag(name);
}

const VALUES: Statement[] = [
  statement('2.6', 'active is true for a valid token', async (service) => {
    const token = await service.clientToken();
    equal('active', (await checkToken(service, token)).record.flag('active'), true);
  }),
  statement('2.6', 'client_id is the client that the token was issued to', async (service) => {
    const { record } = await checkToken(service, await service.clientToken());
    equal('client_id', record.text('client_id'), clientOf(service).id);
  }),
  statement('2.6', 'app_no is the app number of the token record', async (service) => {
    const { record } = await granted(service, 'client_credentials');
    const checked = await checkToken(service, record.text('access_token'));
    equal('app_no', checked.record.integer('app_no'), record.integer('app_no'));
  }),
  statement('2.6', 'member_no and nickname are those of the token record', async (service) => {
    const { record } = await granted(service, 'refresh_token');
    const checked = (await checkToken(service, record.text('access_token'))).record;
    equal('member_no', checked.integer('member_no'), record.integer('member_no'));
    equal('nickname', checked.text('nickname'), record.text('nickname'));
  }),
  statement('2.6', 'exp is the same whenever one token is checked', async (service) => {
    const token = await service.clientToken();
    const [one, two] = [await checkToken(service, token), await checkToken(service, token)];
    equal('exp', two.record.integer('exp'), one.record.integer('exp'));
  }),
];

export const TOKEN_GRANTS: Statement[] = [
  ...FIELDS.flatMap(([name, type, presentFor]) =>
    presentFor.map((grant) =>
      statement('2.5', `${name} is ${TYPES[type]}, present for ${grant}`, async (service) =>
        typed((await granted(service, grant)).record, name, type),
      ),
    ),
  ),
  ...CHECKED.map(([name, type]) =>
    statement('2.6', `${name} is ${TYPES[type]}`, async (service) =>
      typed(await userCheck(service), name, type),
    ),
  ),
  ...VALUES,
  statement('2.5', 'An access token that is issued works at once', async (service) => {
    const { record } = await obtain(service, { grant_type: 'client_credentials' });
    const checked = await checkToken(service, record.text('access_token'));
    ensure(
      checked.record.flag('active'),
      `a new token should be active; received: ${checked.summary}`,
    );
  }),
];
