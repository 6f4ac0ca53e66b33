/**
 * Background traffic: now and then a balance changes or a token moves, as if another app had
 * written. Content and times derive from the seed; it runs by the world's clock when the next
 * request arrives.
 */
import { addressKey } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import { STATUS, type Token, tokenKey, WALLET_STATUS, type Wallet } from '../state/records.ts';
import { addBalance } from '../state/wallets.ts';
import type { World } from '../world.ts';
import { startWrite } from './chain.ts';

/** After a long pause at most this many intervals are simulated. */
const CATCH_UP_MAX = 100;

/** Starts, resumes or stops background traffic, depending on the switch. */
export function scheduleBackgroundTraffic(world: World): void {
  const { background_traffic, background_interval_ms } = world.switches();
  const { background_at } = world.settings();
  if (!background_traffic && background_at !== null) world.change({ background_at: null });
  if (!background_traffic) return;
  const next = background_at ?? world.now() + background_interval_ms;
  if (background_at === null) world.change({ background_at: next });
  addTimer(world, next);
}

/** A timer whose instant is no longer the scheduled one does nothing. */
function addTimer(world: World, at: Instant): void {
  world.timers.add(at, () => {
    if (world.settings().background_at !== at) return;
    actOnce(world);
    const next = nextTime(world);
    world.change({ background_at: next });
    addTimer(world, next);
  });
}

function nextTime(world: World): Instant {
  const { background_interval_ms } = world.switches();
  const draw = world.draw('background-time', world.next('background-time'));
  const next = world.now() + Math.round(background_interval_ms * (0.5 + draw));
  return Math.max(next, world.present() - CATCH_UP_MAX * background_interval_ms);
}

/** Moves a few service tokens between two members' wallets, or one time in four acts on an NFT. */
function actOnce(world: World): void {
  const n = world.next('background');
  const wallets = memberWallets(world);
  const from = wallets[Math.floor(world.draw('background-from', n) * wallets.length)];
  const to = wallets[Math.floor(world.draw('background-to', n) * wallets.length)];
  if (!from || !to) return;
  const token = world.draw('background-kind', n) < 0.25 ? ownedToken(world, from, n) : undefined;
  if (token) {
    // The owner registers it on a market, withdraws it, or transfers it.
    const lock = token.locked || world.draw('background-offer', n) < 0.4;
    if (lock) setLock(world, token, !token.locked);
    else startWrite(world, token, 'transfer_from', to.addr);
    return;
  }
  const amount = 1n + BigInt(Math.floor(world.draw('background-amount', n) * 9));
  if (from.addr !== to.addr) {
    if (from.balance < amount) return;
    addBalance(world, from.addr, -amount);
  }
  addBalance(world, to.addr, amount);
}

/** A write of the developer's app, for a daemon that makes some itself. */
export interface SampleWrite {
  path: string;
  body: Record<string, string | number>;
}

/** Three gives, then a transfer, of a few tokens to a member; undefined without normal wallets. */
export function sampleWrite(world: World): SampleWrite | undefined {
  const n = world.next('sample');
  const wallets = memberWallets(world);
  const drawn = (what: string) => wallets[Math.floor(world.draw(what, n) * wallets.length)];
  const [from, to] = [drawn('sample-from'), drawn('sample-to')];
  if (!from || !to) return undefined;
  const amount = 1 + Math.floor(world.draw('sample-amount', n) * 9);
  const common = { toAddr: to.addr, amount, reasonType: 'sample' };
  if (n % 4n !== 0n || from.addr === to.addr)
    return { path: '/v1/app/token/operations/1/give', body: common };
  const body = { ...common, fromAddr: from.addr, feeAmount: 0 };
  return { path: '/v1/app/token/accounts/transfer', body };
}

function memberWallets(world: World): Wallet[] {
  return [...world.members.values()].flatMap(({ addr }) => {
    const wallet = addr === null ? undefined : world.wallets.get(addressKey(addr));
    return wallet?.status === WALLET_STATUS.normal ? [wallet] : [];
  });
}

/** One of the wallet's complete tokens. */
function ownedToken(world: World, { addr }: Wallet, n: bigint): Token | undefined {
  const own = [...world.tokens.values()].filter(
    ({ owner, status }) => addressKey(owner) === addressKey(addr) && status === STATUS.complete,
  );
  return own[Math.floor(world.draw('background-token', n) * own.length)];
}

function setLock(world: World, token: Token, locked: boolean): void {
  world.tokens.put(tokenKey(token.contract_id, token.token_id), { ...token, locked });
}
