/**
 * Promise 12. Secrets of every kind are planted wherever one comes in, and everything that can fail
 * with one of them fails; then the log at its finest level, all answers, the events, the metrics
 * and all tables are searched for every spelling of them.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { jsonText, tryParseJson } from '../../src/kernel/json.ts';
import { makeApp } from '../harness/app.ts';
import {
  ADMIN_KEY,
  CLIENT,
  type DaemonProcess,
  environmentOf,
  QUICK,
  spawnDaemon,
  startDaemon,
} from '../harness/daemon.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { useWorld } from '../harness/rig.ts';

const PLANTED = {
  masterKey: Buffer.from('planted-master-key-of-32-bytes!!').toString('base64'),
  oidcClientSecret: 'planted-oidc-client-secret',
  bucketSecret: 'planted-bucket-secret',
  proxyPassword: 'planted-proxy-password',
  bucketToken: 'planted-bucket-session-token',
  databasePassword: 'planted-database-password',
  header: 'planted-header-value',
  userToken: 'planted-user-token',
  unknownKey: `thk_planted-unknown-key${'x'.repeat(32)}`,
  code: 'planted-code',
  refreshToken: 'planted-refresh-token',
  checkedToken: 'planted-checked-token',
  basic: 'planted-client:planted-secret',
  signInCode: 'planted-sign-in-code',
  badJson: 'planted-in-bad-json',
};
/** Filled while the test runs. */
const secrets = new Set<string>([ADMIN_KEY, CLIENT.clientSecret, ...Object.values(PLANTED)]);

const world = await useWorld();
let daemon: DaemonProcess;
let port = 0;
const everybody = createServer((incoming, outgoing) => void answer(incoming, outgoing));

/**
 * Everybody whom the daemon speaks to. Repeats what it is sent, as receivers, issuers and buckets
 * do in their errors; what is for the service it passes on.
 */
async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part);
  const body = Buffer.concat(parts);
  const { url = '', method = '', headers } = incoming;
  // What the sandbox cuts is cut here too.
  const cut = () => void incoming.socket.destroy();
  if (url.startsWith('/v1/')) return passOn({ url, method, headers, body }, outgoing).catch(cut);
  const base = `http://127.0.0.1:${port}`;
  if (url.startsWith('/.well-known/'))
    return void outgoing.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        issuer: base,
        authorization_endpoint: `${base}/authorize`,
        token_endpoint: `${base}/token`,
        jwks_uri: `${base}/keys`,
      }),
    );
  const echo = `${JSON.stringify(headers)} ${body}`;
  const head = { 'content-type': 'application/json', location: `/${headers['x-plant']}` };
  outgoing.writeHead(url === '/token' ? 400 : 500, head);
  outgoing.end(JSON.stringify({ error: 'invalid_client', error_description: echo }));
}

/** Passes a request to the sandbox, and notes the tokens that it issues. */
async function passOn(
  { url, method, headers, body }: Pick<IncomingMessage, 'headers'> & Record<string, unknown>,
  outgoing: ServerResponse,
): Promise<void> {
  const {
    host: _h,
    connection: _c,
    'transfer-encoding': _t,
    'content-length': _l,
    ...rest
  } = headers;
  const passed = await request(`${world.sandbox.url}${url}`, {
    method: method as 'GET',
    headers: rest,
    body: (body as Buffer).length > 0 ? (body as Buffer) : null,
  });
  const text = await passed.body.text();
  const json = tryParseJson(text);
  if (json && typeof json === 'object' && 'access_token' in json)
    secrets.add(String(json.access_token));
  outgoing.setHeader('content-type', passed.headers['content-type'] ?? 'application/json');
  outgoing.writeHead(passed.statusCode).end(text);
}

beforeAll(async () => {
  port = await listen(everybody);
  const url = `http://127.0.0.1:${port}`;
  const settings = {
    log: { level: 'trace' },
    console: {
      oidc: {
        issuer: url,
        client_id: 'console',
        redirect_url: `${url}/sign-in/callback`,
        groups: { finance: ['read'] },
      },
    },
    reports: { delivery: { bucket: { name: 'finance', endpoint: url } } },
  };
  daemon = await startDaemon(world, settings, {
    UPSTREAM_BASE_URL: url,
    UPSTREAM_AUTH_URL: url,
    UPSTREAM_TX_URL: url,
    MASTER_KEY: PLANTED.masterKey,
    OIDC_CLIENT_SECRET: PLANTED.oidcClientSecret,
    HTTPS_PROXY: `http://proxy:${PLANTED.proxyPassword}@127.0.0.1:9`,
    AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
    AWS_SECRET_ACCESS_KEY: PLANTED.bucketSecret,
    AWS_SESSION_TOKEN: PLANTED.bucketToken,
  });
});
afterAll(async () => {
  await daemon?.kill();
  await closeServer(everybody);
});

it('No secret of any kind is readable in the log, an answer, an event, a metric or a table', async () => {
  const answers: string[] = [];
  const app = makeApp(() => daemon.url);
  const call: typeof app.call = async (...args) => {
    const answered = await app.call(...args);
    answers.push(`${jsonText(answered.headers)} ${answered.text}`);
    return answered;
  };
  const shown = await plantInApi(call);
  await plantInGateway(call);
  await failInside(call);
  await failSignIn(answers);
  for (const path of ['/metrics', '/api/settings', '/api/status', '/api/endpoints', '/api/keys'])
    await call('GET', path);
  await expect.poll(() => EXPECTED.filter((line) => !daemon.output().includes(line))).toEqual([]);
  const events = jsonText(await app.events());
  await daemon.stop();
  // An answer that shows a new secret once is none of those that are searched.
  const places = {
    answers: answers.filter((text) => !shown.some((secret) => text.includes(secret))).join('\n'),
    events,
    database: await everyText(),
    'start without a database': await failedStart(),
    log: daemon.output(),
  };
  expect(secrets.size).toBeGreaterThan(20);
  for (const [place, text] of Object.entries(places)) {
    expect(text.length, place).toBeGreaterThan(100);
    const found = [...secrets].filter((secret) => spellings(secret).some((s) => text.includes(s)));
    expect(found, place).toEqual([]);
  }
});

/** What the log must hold, so that the paths that fail were indeed taken. */
const EXPECTED = [
  'API request failed',
  'gateway request failed',
  'webhook request could not be built',
  'a report file was not written',
  'sign-in refused',
];

type Call = ReturnType<typeof makeApp>['call'];

/** Makes keys and endpoints; answers the secrets that were shown once. */
async function plantInApi(call: Call): Promise<string[]> {
  const made = await call('POST', '/api/keys', { name: 'a', owner: 'b', scopes: ['gateway'] });
  const input = {
    url: `http://127.0.0.1:${port}/hook`,
    event_types: ['*'],
    headers: { 'x-plant': PLANTED.header },
  };
  const endpoints = [
    await call('POST', '/api/endpoints', input),
    await call('POST', '/api/endpoints', { ...input, url: `${input.url}/broken` }),
  ];
  const [first, second] = endpoints.map(({ json }) => json.id);
  const rotated = await call('POST', `/api/endpoints/${first}/rotate`, {});
  const { sql } = world.database.owner;
  await sql`
    update tallyhook.endpoints set encrypted_secrets = 'broken' where id = ${second}`;
  const shown = [made.json.key, ...[...endpoints, rotated].map(({ json }) => json.secret)];
  for (const secret of shown) {
    expect(secret.length).toBeGreaterThan(20);
    secrets.add(secret);
  }
  await call('POST', '/api/endpoints', `{"headers":{"a":"${PLANTED.badJson}"}`);
  await call('GET', '/api/keys', undefined, { authorization: `Bearer ${PLANTED.unknownKey}` });
  return shown;
}

/** Sends every kind of credential that an app may have, and writes whose answers go wrong. */
async function plantInGateway(call: Call): Promise<void> {
  const own = { authorization: `Bearer ${PLANTED.userToken}`, 'tallyhook-key': ADMIN_KEY };
  const extra = new URLSearchParams({ extraData: '{}' });
  await call('PUT', '/v1/chain/erc721/1/tokens/5/set-extra-data', extra, own);
  const basic = Buffer.from(PLANTED.basic).toString('base64');
  const form = new URLSearchParams({ code: PLANTED.code, refresh_token: PLANTED.refreshToken });
  await call('POST', '/v1/oauth/token', form, { authorization: `Basic ${basic}` });
  await call('GET', `/v1/oauth/check_token?token=${PLANTED.checkedToken}`);
  await call('GET', '/v1/any', undefined, { 'tallyhook-key': PLANTED.unknownKey });
  const { control } = world.sandbox;
  control.addFault({ kind: 'lost_answer', contains: '70001' });
  control.addFault({ kind: 'status', status: 502, contains: '70002' });
  control.addFault({ kind: 'garbled', contains: '70003' });
  for (const amount of [70_000, 70_001, 70_002, 70_003])
    await call('POST', '/v1/app/token/operations/1/give', {
      toAddr: world.ada,
      amount,
      reasonType: 'gift',
    });
}

/** Errors that nobody expects, of statements that have secrets among their parameters. */
async function failInside(call: Call): Promise<void> {
  const { sql } = world.database.owner;
  const name = 'refused by the database';
  for (const [table, column] of [
    ['keys', 'name'],
    ['endpoints', 'description'],
    ['operations', 'reference'],
  ])
    await sql.unsafe(`alter table tallyhook.${table} add constraint refused
      check (${column} is distinct from '${name}') not valid`);
  await call('POST', '/api/keys', { name, owner: 'b', scopes: ['read'] });
  await call('POST', '/api/endpoints', {
    url: `http://127.0.0.1:${port}/hook`,
    event_types: ['*'],
    description: name,
    headers: { 'x-plant': PLANTED.header },
  });
  const give = { toAddr: world.ada, amount: 1, reasonType: 'gift' };
  const reference = { 'tallyhook-reference': name };
  const failed = await call('POST', '/v1/app/token/operations/1/give', give, reference);
  expect(failed.status).toBe(500);
  const now = Date.now();
  const iso = (at: number) => new Date(at).toISOString();
  const period = { kind: 'reconciliation', from: iso(now - 60_000), to: iso(now) };
  expect((await call('POST', '/api/reports', period)).status).toBe(201);
}

/** A person comes back from the issuer, which refuses the daemon and repeats what it was sent. */
async function failSignIn(answers: string[]): Promise<void> {
  const begun = await fetch(`${daemon.url}/sign-in`, { redirect: 'manual' });
  const [cookie = ''] = begun.headers.getSetCookie();
  const state = new URL(begun.headers.get('location') ?? '').searchParams.get('state');
  const back = `${daemon.url}/sign-in/callback?code=${PLANTED.signInCode}&state=${state}`;
  const answered = await fetch(back, { headers: { cookie: cookie.split(';')[0] ?? '' } });
  expect(answered.status).toBe(403);
  answers.push(await answered.text());
}

/** What a daemon says that cannot reach its database. */
async function failedStart(): Promise<string> {
  const closed = createServer();
  const free = await listen(closed);
  await closeServer(closed);
  const database = `postgres://tallyhook:${PLANTED.databasePassword}@127.0.0.1:${free}/none`;
  const env = { ...environmentOf(database, world.sandbox.url), DATABASE_URL: database };
  const settings = { ...QUICK, database: { start_wait_ms: 1_000 }, log: { level: 'trace' } };
  const started = spawnDaemon(env, settings);
  return started.then(
    () => '',
    (error: Error) => error.message,
  );
}

/** As it is, and as it could be written in a text: without its scheme, decoded or encoded. */
function spellings(secret: string): string[] {
  const bare = secret.replace(/^(?:thk|whsec|whsk)_/, '');
  const bytes = Buffer.from(bare);
  return [
    bare,
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('hex'),
    Buffer.from(bare, 'base64').toString('hex'),
    encodeURIComponent(bare),
  ];
}

/** Every row of every table as text, and what its bytes hold. */
async function everyText(): Promise<string> {
  const { sql } = world.database.owner;
  const tables = await sql<{ name: string }[]>`
    select table_name as name from information_schema.tables
    where table_schema = 'tallyhook' and table_type = 'BASE TABLE' order by table_name`;
  const texts: string[] = [];
  for (const { name } of tables) {
    const rows = await sql.unsafe(`select to_jsonb(t)::text as row from tallyhook."${name}" t`);
    texts.push(...rows.map((row) => String(row.row)));
  }
  const text = texts.join('\n');
  const bytes = [...text.matchAll(/"\\\\x([0-9a-f]+)"/g)];
  return [text, ...bytes.map(([, hex = '']) => Buffer.from(hex, 'hex').toString())].join('\n');
}
