/** Debian's nginx on loopback, with one location. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from './listen.ts';
import { until } from './until.ts';

export interface Nginx {
  url: string;
  close(): Promise<void>;
}

/** @param location a `location` block, or several */
export async function startNginx(folder: string, location: string): Promise<Nginx> {
  const port = await freePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  // The folder belongs to whoever runs the test.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const file = join(folder, `nginx-${port}.conf`);
  writeFileSync(
    file,
    `${user}
daemon off; worker_processes 1; error_log stderr; pid ${join(folder, `${port}.pid`)};
events {}
http { access_log off; ${temporary.join(' ')}
server { listen 127.0.0.1:${port};
${location}
} }
`,
  );
  const child = spawn('/usr/sbin/nginx', ['-c', file, '-p', folder], { stdio: 'inherit' });
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = `http://127.0.0.1:${port}`;
  const isUp = () =>
    fetch(url).then(
      () => true,
      () => undefined,
    );
  if (!(await until(isUp, { deadlineMs: 10_000 }))) throw new Error('nginx does not answer');
  return {
    url,
    async close() {
      child.kill('SIGTERM');
      await gone;
    },
  };
}
