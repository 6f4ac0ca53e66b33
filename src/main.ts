/** The process entry: runs the daemon and exits with its code. */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// It halves the time of a start. Where the folder cannot be written, it does nothing.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compile'));
const { runDaemon } = await import('./daemon/daemon.ts');
process.exit(await runDaemon());
