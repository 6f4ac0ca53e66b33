/** A sandbox with wallets to give to, for the gateway and the bare proxy alike. */
import { systemClock } from '../../../src/kernel/clock.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';

const [clientId = '', clientSecret = '', wallets = '0'] = process.argv.slice(2);
const sandbox = await startSandbox({ seed: 1, clientId, clientSecret, clock: systemClock });
for (let i = 1; i <= Number(wallets); i++)
  sandbox.control.setWallet(`0x${i.toString(16).padStart(40, 'b')}`, { amt_token: 1_000n });
process.stdout.write(`ready at ${sandbox.url}\n`);
process.once('SIGTERM', () => process.exit(0));
