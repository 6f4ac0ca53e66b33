/**
 * The simulated chain. Each write gets a hash, is Pending, then in Progress, and ends Complete or
 * Fail after a time drawn from the seed. Its effect on the token shows when it completes; a failed
 * write changes only the token's status and last hash.
 */
import {
  type Contract,
  newToken,
  STATUS,
  type Token,
  tokenKey,
  type Work,
} from '../state/records.ts';
import type { World } from '../world.ts';

/** The share of the settle time for which a write is Pending. */
const PENDING_SHARE = 0.3;

/** The next chain transaction hash: 66 characters. */
export function nextHash(world: World): string {
  return `0x${world.hex('tx', world.next('tx'), 64)}`;
}

/** Starts the mint of a new token and returns the hash. */
export function startMint(
  world: World,
  contract: Contract,
  { token_id, ...fields }: Pick<Token, 'token_id' | 'owner' | 'uri' | 'metadata' | 'extra'>,
  kind: 'mint' | 'mint_sequential',
): string {
  const token = newToken(contract, token_id, world.now(), { ...fields, exists: false });
  return startWrite(world, token, kind, token.owner);
}

/**
 * Starts a chain write: sets the token Pending under a new hash, records the write as applied and
 * returns the hash.
 * @param value the new owner or the new extra data; empty for a burn
 */
export function startWrite(world: World, token: Token, kind: Work['kind'], value: string): string {
  const n = world.next('chain');
  const now = world.now();
  const settleMs = settleTime(world, n);
  const { fail_next } = world.settings();
  if (fail_next > 0) world.change({ fail_next: fail_next - 1 });
  const work: Work = {
    kind,
    value,
    progress_at: now + Math.round(settleMs * PENDING_SHARE),
    final_at: now + settleMs,
    fails: fail_next > 0 || world.draw('fail', n) < world.switches().fail_share,
  };
  const hash = nextHash(world);
  const pending: Token = { ...token, status: STATUS.pending, last_tx_hash: hash, work };
  world.tokens.put(tokenKey(token.contract_id, token.token_id), pending);
  scheduleWork(world, pending);
  const minting = kind === 'mint' || kind === 'mint_sequential';
  world.applied({
    kind,
    tx_hash: hash,
    contract_id: token.contract_id,
    token_id: token.token_id,
    from_addr: minting ? null : token.owner,
    to_addr: minting || kind === 'transfer_from' ? value : null,
  });
  return hash;
}

/** Schedules all unsettled writes again after the world was loaded. */
export function resumeChain(world: World): void {
  for (const token of world.tokens.values()) scheduleWork(world, token);
}

/** Whether the chain has not settled the token's last write. */
export function isProcessing(token: Token): boolean {
  return token.status === STATUS.pending || token.status === STATUS.progress;
}

/**
 * The time that the chain takes for its n-th transaction: log-normal around the median, at most
 * twenty times the median.
 */
export function settleTime(world: World, n: bigint): number {
  const { settle_median_ms, settle_sigma } = world.switches();
  const u = 1 - world.draw('settle-a', n);
  const v = world.draw('settle-b', n);
  const normal = Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * v);
  return Math.round(settle_median_ms * Math.min(20, Math.exp(settle_sigma * normal)));
}

function scheduleWork(world: World, { contract_id, token_id, last_tx_hash, work }: Token): void {
  if (!work) return;
  const key = tokenKey(contract_id, token_id);
  const update = (change: (token: Token) => void) => () => {
    const token = world.tokens.get(key);
    // A later write or an outside change has replaced this write.
    if (token?.work && token.last_tx_hash === last_tx_hash) change(token);
  };
  world.timers.add(
    work.progress_at,
    update((token) => world.tokens.put(key, { ...token, status: STATUS.progress })),
  );
  world.timers.add(
    work.final_at,
    update((token) => settle(world, key, token, work)),
  );
}

function settle(world: World, key: string, token: Token, work: Work): void {
  if (work.fails) {
    world.tokens.put(key, { ...token, status: STATUS.fail, work: null });
  } else if (work.kind === 'burn') {
    world.tokens.delete(key);
  } else {
    const done = { ...token, status: STATUS.complete, exists: true, work: null };
    if (work.kind === 'set_extra_data') done.extra = work.value;
    if (work.kind === 'transfer_from') {
      done.owner = work.value;
      done.owned_at = world.now();
    }
    world.tokens.put(key, done);
  }
}
