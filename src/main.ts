/**
 * The process entry: runs the daemon and exits with its code. `npm start`, the image and
 * `tallyhook start` run it with two flags, which the process of webhooks inherits. Without
 * `--max-semi-space-size=4` V8 lets the young generation grow to 128 MB under load; without
 * `--max-old-space-size=1024` it collects the old one when it is four times as large as what is in
 * use, by the size of the machine: 295 MB after two minutes of 20 writes/s instead of 183.
 */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

if (process.argv.length > 2) {
  process.stdout.write('a start has no arguments; docs/settings.md lists its settings\n');
  process.exit(1);
}
// Halves the start time; has no effect where the folder cannot be written.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compile'));
const { runDaemon } = await import('./daemon/daemon.ts');
process.exit(await runDaemon());
