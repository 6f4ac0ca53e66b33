/** The process entry: runs the daemon and exits with its code. Nothing else. */
import { runDaemon } from './daemon/process.ts';

process.exit(await runDaemon());
