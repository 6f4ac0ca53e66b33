/**
 * A little life of its own: now and then a wallet's balance changes or a token moves, as if
 * somebody else had acted. What happens and when belongs to the seed; it happens by the world's
 * clock when the next request comes, so no timer runs.
 */
import { addressKey } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import { STATUS, type Token, tokenKey, WALLET_STATUS, type Wallet } from '../state/records.ts';
import { move } from '../state/wallets.ts';
import type { World } from '../world.ts';
import { begin } from './chain.ts';

/** After a long silence at most this many intervals are lived through. */
const CATCH_UP = 100;

/** Begins, goes on with or ends the life of the world, as the switch says. */
export function enliven(world: World): void {
  const { liveliness, lively_interval_ms } = world.switches();
  const { lively_at } = world.settings();
  if (!liveliness && lively_at !== null) world.change({ lively_at: null });
  if (!liveliness) return;
  const next = lively_at ?? world.now() + lively_interval_ms;
  if (lively_at === null) world.change({ lively_at: next });
  plan(world, next);
}

/** Puts the next act on the agenda; one that was put off or switched off meanwhile does nothing. */
function plan(world: World, at: Instant): void {
  world.agenda.add(at, () => {
    if (world.settings().lively_at !== at) return;
    liveOnce(world);
    const next = nextTime(world);
    world.change({ lively_at: next });
    plan(world, next);
  });
}

function nextTime(world: World): Instant {
  const { lively_interval_ms } = world.switches();
  const gap = lively_interval_ms * (0.5 + world.draw('lively-time', world.next('lively-time')));
  const next = world.now() + Math.round(gap);
  return Math.max(next, world.present() - CATCH_UP * lively_interval_ms);
}

/** One act: mostly a few service tokens between two members' wallets, sometimes an NFT. */
function liveOnce(world: World): void {
  const n = world.next('lively');
  const wallets = memberWallets(world);
  const from = wallets[Math.floor(world.draw('lively-from', n) * wallets.length)];
  const to = wallets[Math.floor(world.draw('lively-to', n) * wallets.length)];
  if (!from || !to) return;
  const token = world.draw('lively-kind', n) < 0.25 ? ownedToken(world, from, n) : undefined;
  if (token) {
    // The owner offers it on a market, takes it back, or gives it away.
    if (token.locked || world.draw('lively-offer', n) < 0.4) setLock(world, token, !token.locked);
    else begin(world, token, 'transfer_from', to.addr);
    return;
  }
  const amount = 1n + BigInt(Math.floor(world.draw('lively-amount', n) * 9));
  if (from.addr === to.addr) {
    move(world, to.addr, amount);
    return;
  }
  if (from.balance < amount) return;
  move(world, from.addr, -amount);
  move(world, to.addr, amount);
}

function memberWallets(world: World): Wallet[] {
  return [...world.members.values()].flatMap(({ addr }) => {
    const wallet = addr === null ? undefined : world.wallets.get(addressKey(addr));
    return wallet?.status === WALLET_STATUS.normal ? [wallet] : [];
  });
}

/** One of the wallet's tokens that the chain is done with. */
function ownedToken(world: World, { addr }: Wallet, n: bigint): Token | undefined {
  const own = [...world.tokens.values()].filter(
    ({ owner, status }) => addressKey(owner) === addressKey(addr) && status === STATUS.complete,
  );
  return own[Math.floor(world.draw('lively-token', n) * own.length)];
}

function setLock(world: World, token: Token, locked: boolean): void {
  world.tokens.put(tokenKey(token.contract_id, token.token_id), { ...token, locked });
}
