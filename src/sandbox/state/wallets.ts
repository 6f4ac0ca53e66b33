/** Wallets: addresses, balance changes, and the wallet that a member gets on the first own read. */
import { addressKey } from '../../kernel/addresses.ts';
import type { World } from '../world.ts';
import { type Member, WALLET_STATUS, type Wallet } from './records.ts';

/** A 42-character address derived from the seed, the label and the number. */
export function addressOf(world: World, label: string, n: bigint): string {
  return `0x${world.hex(`addr-${label}`, n, 40)}`;
}

export function putWallet(world: World, wallet: Wallet): Wallet {
  world.wallets.put(addressKey(wallet.addr), wallet);
  return wallet;
}

/** The member's wallet; created if there is none. */
export function walletOf(world: World, member: Member): Wallet {
  const found = member.addr === null ? undefined : world.wallets.get(addressKey(member.addr));
  if (found) return found;
  const addr = addressOf(world, 'member', member.member_no);
  world.members.put(member.member_no.toString(), { ...member, addr });
  return (
    world.wallets.get(addressKey(addr)) ??
    putWallet(world, { addr, balance: 0n, status: WALLET_STATUS.normal })
  );
}

/** Adds the amount, which may be negative, to a balance. The caller has checked the balance. */
export function addBalance(world: World, addr: string, amount: bigint): void {
  const wallet = world.wallets.get(addressKey(addr));
  if (wallet) putWallet(world, { ...wallet, balance: wallet.balance + amount });
}
