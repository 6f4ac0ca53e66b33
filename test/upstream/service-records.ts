/** Records and refusals as the service writes them, and looks at them. */
import type { Upstream } from '../../src/upstream/upstream.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { type Reply, type Script, startScripted, upstreamTo } from './scripted-service.ts';

export const ADDR = `0x${'aB'.repeat(20)}`;
export const OTHER = `0x${'cd'.repeat(20)}`;
export const wallet = { token_addr: ADDR, amt_token: 12345678901234567890n, status: 1 };
export const token = {
  contract_id: 3,
  token_id: 9,
  token_owner: ADDR,
  token_uri: 'ipfs://x',
  token_metadata: '',
  token_extradata: '',
  token_creator: ADDR,
  token_created_at: '2026-01-01 09:00:00',
  token_owned_at: '2026-01-01 09:00:00',
  token_is_locked: 0,
  status: 1,
  last_tx_hash: `0x${'ef'.repeat(32)}`,
};
export const ok = (data: unknown): Reply => [200, { status: 200, data }];
export const nft = (status: number, message: string): Reply => [
  200,
  { status, error: [{ message, field: '', validation: '' }] },
];
export const account = (status: number, code: number, http = 200): Reply => [
  http,
  { status: String(status), error: { code: String(code), message: 'no' } },
];

/** An upstream on a manual clock that looks at a script. */
export async function poll(script: Script, clock = manualClock()) {
  const service = await startScripted(script);
  return { service, clock, ...(await upstreamTo(service.origin, clock)) };
}

/** One look at the wallet. */
export const wallets = (upstream: Upstream) => upstream.account(ADDR, 'steady');
