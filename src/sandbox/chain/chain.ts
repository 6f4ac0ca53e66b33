/**
 * The simulated chain: each write to it gets a hash, waits (Pending), is worked on (Progress),
 * and ends in Complete or Fail after a time that belongs to the seed. Its effect on a token is
 * seen when it completes; a failed one leaves the token as it was, with the status and the hash
 * of the failure.
 */
import { type Contract, STATUS, type Token, tokenKey, type Work } from '../state/records.ts';
import type { World } from '../world.ts';

/** Which share of the settle time a write waits before it is worked on. */
const PENDING_SHARE = 0.3;

/** The next chain transaction hash: 66 characters. */
export function nextHash(world: World): string {
  return `0x${world.hex('tx', world.next('tx'), 64)}`;
}

/** Creates a token whose mint has begun. Answers the hash. */
export function beginMint(
  world: World,
  contract: Contract,
  fields: Pick<Token, 'token_id' | 'owner' | 'uri' | 'metadata' | 'extra'>,
  kind: 'mint' | 'mint_sequential',
): string {
  const now = world.now();
  const token: Token = {
    ...fields,
    contract_id: contract.contract_id,
    creator: contract.creator_addr,
    created_at: now,
    owned_at: now,
    locked: false,
    status: STATUS.pending,
    last_tx_hash: '',
    exists: false,
    work: null,
  };
  return begin(world, token, kind, token.owner);
}

/**
 * Begins a write to the chain: the token is Pending under a new hash, and the write is recorded as
 * applied. Answers the hash.
 * @param value the new owner or the new extra data; nothing for a burn
 */
export function begin(world: World, token: Token, kind: Work['kind'], value: string): string {
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
  awaitChain(world, pending);
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

/** Puts what the chain still has to do on the agenda again, after the world was loaded. */
export function resume(world: World): void {
  for (const token of world.tokens.values()) awaitChain(world, token);
}

/** True while the chain is still working on the token. */
export function isProcessing(token: Token): boolean {
  return token.status === STATUS.pending || token.status === STATUS.progress;
}

/** Log-normal around the median, at most twenty times it: a long tail, as chains have. */
function settleTime(world: World, n: bigint): number {
  const { settle_median_ms, settle_sigma } = world.switches();
  const u = 1 - world.draw('settle-a', n);
  const v = world.draw('settle-b', n);
  const normal = Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * v);
  return Math.round(settle_median_ms * Math.min(20, Math.exp(settle_sigma * normal)));
}

function awaitChain(world: World, { contract_id, token_id, last_tx_hash, work }: Token): void {
  if (!work) return;
  const key = tokenKey(contract_id, token_id);
  const current = () => {
    const token = world.tokens.get(key);
    return token?.work && token.last_tx_hash === last_tx_hash ? token : undefined;
  };
  world.agenda.add(work.progress_at, () => {
    const token = current();
    if (token) world.tokens.put(key, { ...token, status: STATUS.progress });
  });
  world.agenda.add(work.final_at, () => {
    const token = current();
    if (token) settle(world, key, token, work);
  });
}

function settle(world: World, key: string, token: Token, work: Work): void {
  if (work.fails) {
    world.tokens.put(key, { ...token, status: STATUS.fail, work: null });
  } else if (work.kind === 'burn') {
    world.tokens.delete(key);
  } else {
    world.tokens.put(key, { ...token, ...effectOf(work, world.now()), work: null });
  }
}

function effectOf(work: Work, now: number): Partial<Token> {
  const done = { status: STATUS.complete, exists: true };
  switch (work.kind) {
    case 'set_extra_data':
      return { ...done, extra: work.value };
    case 'transfer_from':
      return { ...done, owner: work.value, owned_at: now };
    default:
      return done;
  }
}
