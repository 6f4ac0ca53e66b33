/** Secrets that stand in files, as orchestrators mount them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfig } from '../../src/daemon/config/config.ts';
import { SECRETS } from '../../src/daemon/config/settings.ts';
import { ADMIN_KEY, environmentOf, spawnDaemon } from '../harness/daemon.ts';
import { useFolder } from '../harness/folder.ts';
import { useWorld } from '../harness/rig.ts';
import { refusal } from './refusal.ts';

const world = await useWorld();
const folder = useFolder();

let files = 0;
function fileOf(text: string): string {
  const path = join(folder, `${files++}`);
  writeFileSync(path, text);
  return path;
}

it('A daemon whose secrets all stand in files serves with them and shows none of them', async () => {
  const env = environmentOf(world.database.url, world.sandbox.url);
  const secrets = SECRETS.filter((name) => env[name] !== undefined);
  expect(secrets).toEqual(['UPSTREAM_CLIENT_SECRET', 'DATABASE_URL', 'ADMIN_KEY', 'MASTER_KEY']);
  const inFiles = Object.entries(env).map(([name, value]) =>
    secrets.includes(name) ? [`${name}_FILE`, fileOf(`${value}\n`)] : [name, value],
  );
  const daemon = await spawnDaemon(Object.fromEntries(inFiles), { http: { port: 0 } });
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const answer = await fetch(`${daemon.url}/api/settings?limit=1000`, { headers });
  const text = await answer.text();
  expect([answer.status, await daemon.stop()]).toEqual([200, 0]);
  const rows: { name: string }[] = JSON.parse(text).data;
  for (const name of secrets) {
    const row = { value: null, source: 'environment', is_secret: true, is_set: true };
    expect(rows.find((one) => one.name === name)).toMatchObject(row);
    expect(text).not.toContain(env[name]);
    expect(daemon.output()).not.toContain(env[name]);
  }
});

it('Of a file only the newline at its end is dropped before the value is read', () => {
  for (const end of ['', '\n', '\r\n']) {
    const config = loadConfig({ OIDC_CLIENT_SECRET_FILE: fileOf(`a secret${end}`) });
    expect(config.oidcClientSecret).toBe('a secret');
  }
  const two = loadConfig({ OIDC_CLIENT_SECRET_FILE: fileOf('two\nlines\n') });
  expect(two.oidcClientSecret).toBe('two\nlines');
});

it('A file that is missing, empty, a folder or too large is refused by the name of its variable', () => {
  const missing = join(folder, 'missing');
  expect(refusal({ ADMIN_KEY_FILE: missing })).toMatch(
    /^ADMIN_KEY_FILE: \/\S+\/missing cannot be read \(ENOENT\); it must be a file /,
  );
  expect(refusal({ MASTER_KEY_FILE: folder })).toMatch(/^MASTER_KEY_FILE: .*EISDIR/);
  expect(refusal({ ADMIN_KEY_FILE: fileOf(' \n') })).toMatch(/^ADMIN_KEY_FILE: \S+ is empty$/);
  const large = /^ADMIN_KEY_FILE: \S+ is larger than 65536 bytes$/;
  expect(refusal({ ADMIN_KEY_FILE: fileOf('hush'.repeat(16_385)) })).toMatch(large);
  expect(refusal({ ADMIN_KEY_FILE: '/dev/zero' })).toMatch(large);
});

it('A secret in its variable and in a file is refused', () => {
  const env = { ADMIN_KEY, ADMIN_KEY_FILE: fileOf(ADMIN_KEY) };
  expect(refusal(env)).toBe('ADMIN_KEY and ADMIN_KEY_FILE are both set; set one');
  expect(loadConfig({ ...env, ADMIN_KEY: ' ' }).adminKey).toBe(ADMIN_KEY);
  expect(loadConfig({ ...env, ADMIN_KEY_FILE: '' }).adminKey).toBe(ADMIN_KEY);
});

it('No refusal has the content of a file', () => {
  const refusals = [
    refusal({ ADMIN_KEY_FILE: fileOf('thk_hush') }),
    refusal({ MASTER_KEY_FILE: fileOf('hush') }),
    refusal({ DATABASE_URL_FILE: fileOf('hush://u:hush@h') }),
    refusal({ ADMIN_KEY: 'thk_hush', ADMIN_KEY_FILE: fileOf('thk_hush') }),
    refusal({ UPSTREAM_CLIENT_SECRET_FILE: fileOf('hush') }),
  ];
  expect(refusals.join()).not.toContain('hush');
});

it('Only a secret may stand in a file', () => {
  expect(refusal({ UPSTREAM_BASE_URL_FILE: fileOf('https://api.example') })).toMatch(
    /^UPSTREAM_BASE_URL_FILE is not a setting; did you mean UPSTREAM_BASE_URL\?$/,
  );
});
