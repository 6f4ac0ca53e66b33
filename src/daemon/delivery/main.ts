/** The entry of the process that sends the webhooks of a daemon, which starts it. */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { onStopSignals } from '../stop-signals.ts';

// Its daemon stops it. One that Ctrl-C ended while it loads would be started again meanwhile.
onStopSignals(() => {});
// As in src/main.ts.
enableCompileCache(join(import.meta.dirname, '../../../node_modules/.cache/compile'));
const { runDelivery } = await import('./process.ts');
process.exit(await runDelivery());
