/** The process entry: runs the daemon and exits with its code. */
import { runDaemon } from './daemon/daemon.ts';

process.exit(await runDaemon());
