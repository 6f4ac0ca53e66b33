/** What people are shown of the configuration. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfig } from '../../src/daemon/config/config.ts';
import { useFolder } from '../harness/folder.ts';

const SECRETS = {
  DATABASE_URL: 'postgres://someone:hush-database@db.example/tallyhook',
  ADMIN_KEY: `thk_hush-admin-${'x'.repeat(32)}`,
  MASTER_KEY: Buffer.alloc(32, 'hush').toString('base64'),
  UPSTREAM_CLIENT_SECRET: 'hush-client',
  AWS_ACCESS_KEY_ID: 'hush-bucket-id',
  AWS_SECRET_ACCESS_KEY: 'hush-bucket',
  AWS_SESSION_TOKEN: 'hush-session',
};
const SERVICE = {
  UPSTREAM_BASE_URL: 'https://me:hush-login@api.example/v1/?token=hush-query',
  UPSTREAM_AUTH_URL: 'https://auth.example',
  UPSTREAM_TX_URL: 'https://tx.example',
  UPSTREAM_CLIENT_ID: 'shop',
};

const ADDR = `0x${'0'.repeat(40)}`;
const folder = useFolder();

function effective(env: Record<string, string>, overrides: object = {}) {
  return new Map(loadConfig(env, overrides).effective.map((row) => [row.name, row]));
}

it('Every setting is listed with the strongest source that names it', () => {
  const file = join(folder, 'settings.yaml');
  const text = `http: { port: 1, host: 0.0.0.0 }\nledger: { operators: { 7: "${ADDR}" } }\n`;
  writeFileSync(file, text);
  const env = { TALLYHOOK_CONFIG: file, PORT: '2', LOG_LEVEL: 'warn' };
  const found = effective(env, { log: { level: 'error' } });
  expect(found.get('http.port')).toMatchObject({ value: 2, source: 'environment' });
  expect(found.get('http.host')).toMatchObject({ value: '0.0.0.0', source: 'file' });
  expect(found.get('log.level')).toMatchObject({ value: 'error', source: 'command' });
  expect(found.get('ledger.operators.7')).toMatchObject({ source: 'file' });
  expect(found.get('ledger.fees_addr')).toMatchObject({ value: null, source: 'default' });
  expect(found.get('webhooks.allow_cidrs')).toMatchObject({ value: [], source: 'default' });
});

it('Of a forward proxy its address is listed, without the login', () => {
  const env = { HTTPS_PROXY: 'u:hush@a:1', http_proxy: 'http://u:hush@b:2', NO_PROXY: 'c' };
  const found = effective({ ...env, UPSTREAM_PROXY: 'https://u:hush@d:3' });
  const shown = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY', 'NO_PROXY', 'upstream.proxy'];
  expect(shown.map((name) => found.get(name)?.value)).toEqual([
    'http://a:1',
    'http://b:2',
    null,
    'c',
    'https://d:3',
  ]);
  expect(found.get('webhooks.proxy')?.value).toBe('environment');
  expect(JSON.stringify([...found.values()])).not.toContain('hush');
});

it('Of a secret it is listed only whether it is set', () => {
  const found = effective({ ...SECRETS, ...SERVICE });
  for (const name of Object.keys(SECRETS))
    expect(found.get(name)).toMatchObject({ value: null, is_secret: true, is_set: true });
  expect(found.get('MASTER_KEY_OLD')).toMatchObject({ value: null, is_set: false });
  expect(found.get('UPSTREAM_BASE_URL')?.value).toBe('https://api.example/v1');
  expect(JSON.stringify([...found.values()])).not.toMatch(/hush|aHVzaA/);
});
