/** The files of config/ by the programs of Debian that read them: systemd and nginx. */
import { execFile, spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { useFolder } from '../harness/folder.ts';
import { freePort } from '../harness/listen.ts';
import { useRig } from '../harness/rig.ts';
import { until } from '../harness/until.ts';

const ROOT = join(import.meta.dirname, '../..');
const CONFIG = join(ROOT, 'config');
const run = promisify(execFile);
const folder = useFolder();
const rig = useRig();

it('systemd finds no fault in tallyhook.service, and calls it well confined', async () => {
  const text = await readFile(join(CONFIG, 'tallyhook.service'), 'utf8');
  const file = join(folder, 'tallyhook.service');
  expect(text).toContain('/opt/tallyhook/');
  await writeFile(file, text.replaceAll('/opt/tallyhook', ROOT));
  const verified = await run('systemd-analyze', ['verify', '--man=no', file]);
  expect(verified.stdout + verified.stderr).toBe('');
  // 0 is confined best; most services have 9.
  const security = ['security', '--offline=true', '--threshold=15', file];
  const { stdout } = await run('systemd-analyze', security);
  expect(stdout).toMatch(/Overall exposure level for tallyhook.service: 1\.\d OK/);
});

it('nginx.conf is valid, and leads apps to a daemon but not to its metrics', async () => {
  const [key, certificate] = [join(folder, 'tls.key'), join(folder, 'tls.crt')];
  const names = ['-subj', '/CN=tallyhook.example.com', '-days', '2'];
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...names];
  await run('openssl', [...request, '-keyout', key, '-out', certificate]);
  const [tls, plain] = [await freePort(), await freePort()];
  const text = (await readFile(join(CONFIG, 'nginx.conf'), 'utf8'))
    .replaceAll('/etc/nginx/tallyhook.crt', certificate)
    .replaceAll('/etc/nginx/tallyhook.key', key)
    .replace('listen 443 ssl', `listen 127.0.0.1:${tls} ssl`)
    .replace('listen 80;', `listen 127.0.0.1:${plain};`)
    .replace('server 10.0.0.11:8080', `server ${new URL(rig.daemon.url).host}`)
    .replace('server 10.0.0.12:8080', 'server 127.0.0.1:1');
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const whole = `${user} daemon off; error_log stderr; pid ${folder}/nginx.pid; events {}
http { access_log off; ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${join(folder, name)};`)
    .join(' ')}
${text} }`;
  const file = join(folder, 'nginx.conf');
  await writeFile(file, whole);
  const { stderr } = await run('/usr/sbin/nginx', ['-t', '-c', file, '-p', folder]);
  expect(stderr).toMatch(/test is successful/);
  expect(stderr).not.toContain('[warn]');
  const nginx = spawn('/usr/sbin/nginx', ['-c', file, '-p', folder], { stdio: 'ignore' });
  try {
    const curl = async (path: string) => {
      const args = ['--silent', '--cacert', certificate, '--write-out', '\n%{http_code}'];
      const host = ['--resolve', `tallyhook.example.com:${tls}:127.0.0.1`];
      const url = `https://tallyhook.example.com:${tls}${path}`;
      const { stdout } = await run('curl', [...args, ...host, url]).catch(() => ({ stdout: '' }));
      return stdout || undefined;
    };
    expect(await until(() => curl('/healthz'))).toMatch(/"ok".*\n200$/);
    // The other daemon is down.
    for (let n = 0; n < 4; n++) expect(await curl('/readyz')).toMatch(/\n200$/);
    expect(await curl('/metrics')).toMatch(/\n404$/);
    const redirected = await fetch(`http://127.0.0.1:${plain}/docs`, {
      redirect: 'manual',
      headers: { host: 'tallyhook.example.com' },
    });
    expect(redirected.status).toBe(301);
  } finally {
    const ended = new Promise((resolve) => nginx.once('exit', resolve));
    nginx.kill('SIGTERM');
    await ended;
  }
});
