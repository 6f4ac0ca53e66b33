/**
 * Promise 12. Secrets are planted wherever one comes in; then the log, the events, the refusals and
 * all texts of the database are searched for them.
 */
import { expect, it } from 'vitest';
import { ADMIN_KEY } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';

const rig = useRig({ log: { level: 'trace' } });

it('No key, token, client secret, signing secret or custom header is readable anywhere', async () => {
  const { app, world, daemon } = rig;
  const receiver = await rig.receiver();
  const endpoint = await app.call('POST', '/api/endpoints', {
    url: `${receiver.url}/hook`,
    event_types: ['*'],
    headers: { 'x-plant': 'planted-header-value' },
  });
  const made = await app.call('POST', '/api/keys', { name: 'a', owner: 'b', scopes: ['gateway'] });
  const own = { authorization: 'Bearer planted-user-token', 'tallyhook-key': ADMIN_KEY };
  const extra = new URLSearchParams({ extraData: '{}' });
  await app.call('PUT', '/v1/chain/erc721/1/tokens/5/set-extra-data', extra, own);
  await app.call('POST', '/v1/oauth/token', new URLSearchParams({ code: 'planted-code' }), {
    authorization: `Basic ${Buffer.from('planted-client:planted-secret').toString('base64')}`,
  });
  await app.call('GET', '/v1/oauth/check_token?token=planted-checked-token');
  await app.call('POST', '/api/endpoints', '{"headers":{"a":"planted-in-bad-json"}');
  const answer = await app.give(world.ada, 3);
  await app.until((e) => e.data.operation_id === answer.headers['tallyhook-operation']);
  await receiver.next();

  const secrets = [
    ADMIN_KEY,
    'test-secret',
    'planted-header-value',
    'planted-user-token',
    'planted-code',
    Buffer.from('planted-client:planted-secret').toString('base64'),
    'planted-checked-token',
    'planted-in-bad-json',
    String(made.json.secret ?? made.json.key),
    String(endpoint.json.secret),
    Buffer.alloc(32, 7).toString('base64'),
  ];
  expect(secrets.every((secret) => secret.length > 8)).toBe(true);
  const places = {
    log: daemon.output(),
    events: JSON.stringify(await app.events(), (_, v) => (typeof v === 'bigint' ? `${v}` : v)),
    database: await everyText(),
  };
  expect(await daemon.stop()).toBe(0);
  for (const [place, text] of Object.entries(places)) {
    expect(text.length, place).toBeGreaterThan(100);
    for (const secret of secrets)
      expect(text.includes(secret), `${secret} in ${place}`).toBe(false);
  }
});

/** Every row of every table as text, with bytes as the text that they hold. */
async function everyText(): Promise<string> {
  const { sql } = rig.world.database.owner;
  const tables = await sql<{ name: string }[]>`
    select table_name as name from information_schema.tables
    where table_schema = 'tallyhook' and table_type = 'BASE TABLE' order by table_name`;
  const texts: string[] = [];
  for (const { name } of tables) {
    const rows = await sql.unsafe(`select to_jsonb(t)::text as row from tallyhook."${name}" t`);
    texts.push(...rows.map((row) => String(row.row)));
  }
  const bodies = await sql<{ body: string }[]>`
    select encode(request_body, 'escape') || coalesce(encode(answer_body, 'escape'), '') as body
    from tallyhook.operations`;
  return [...texts, ...bodies.map((row) => row.body)].join('\n');
}
