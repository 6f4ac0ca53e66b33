/** Outside changes, and faults of the service. */
import { addressKey } from '../../../src/kernel/addresses.ts';
import type { Instant } from '../../../src/kernel/clock.ts';
import { CONTRACT, type World } from './world.ts';
import type { RequestedWrite } from './writes.ts';

export interface Outside {
  addr: string;
  amount: bigint;
  at: Instant;
  /** When the one who made it has reported it. */
  reportedAt?: Instant;
}

/**
 * A change of a balance that no sum of writes equals, or the return of an earlier one. With
 * `lookAlike`, a change that equals the effect of a recent write.
 */
export function changeWallet(
  world: World,
  before: readonly Outside[],
  requested: readonly RequestedWrite[],
) {
  const { random, users, plan } = world;
  const below = (n: number) => Math.floor(random.unit() * n);
  let addr = users[below(users.length)] ?? '';
  let amount = 10_000_000n * BigInt(1 + below(9)) * (below(3) === 0 ? -1n : 1n);
  const back = below(3) === 0 ? before[below(before.length)] : undefined;
  if (plan.lookAlike) {
    const lately = requested.slice(-30).filter(({ fields }) => fields.amount != null);
    const like = lately[below(lately.length)]?.fields;
    if (like) {
      const pays = like.fromAddr && below(2) === 0;
      addr = (pays ? like.fromAddr : (like.toAddr ?? like.fromAddr)) ?? addr;
      amount = (like.amount ?? 1n) * (pays || below(3) === 0 ? -1n : 1n);
    }
  } else if (back) {
    addr = back.addr;
    amount = -back.amount;
  }
  return changeBy(world, addr, amount);
}

/** Changes a balance, unless the wallet could not pay any more. */
export function changeBy({ sandbox, clock }: World, addr: string, amount: bigint): Outside[] {
  const balance = sandbox.world.wallets.get(addressKey(addr))?.balance ?? 0n;
  if (balance + amount < 500_000n) return [];
  sandbox.control.setWallet(addr, { delta: amount });
  return [{ addr, amount, at: clock.now() }];
}

/** Changes owner, extra data or lock of a token that the chain is not processing. */
export function changeToken({ sandbox, random, users, serial, plan }: World): void {
  const below = (n: number) => Math.floor(random.unit() * n);
  // A burn that is due must not end between the choice and the change, which would mint it again.
  sandbox.world.advance();
  const all = [...sandbox.world.tokens.values()].filter(
    ({ contract_id: contract, work, exists }) => contract === CONTRACT && exists && !work,
  );
  const token = all[below(all.length)];
  if (!token) return;
  const dice = below(4);
  // An address that no write names.
  const outsider = `0x0ff${String(below(1_000_000)).padStart(37, '0')}`;
  const change = [
    { locked: !token.locked },
    { locked: false },
    { owner: plan.lookAlike ? (users[below(plan.members)] ?? outsider) : outsider },
    { extra: JSON.stringify({ outside: serial() }) },
  ][dice];
  if (change) sandbox.control.setToken(CONTRACT, token.token_id, change);
}

/** The next reads show things as they were a while ago, within the read lag that is assumed. */
export function staleReads({ sandbox, random }: World): void {
  sandbox.control.addFault({
    kind: 'stale_list',
    age_ms: 100 + Math.floor(random.unit() * 890),
    count: 3,
    method: 'GET',
    path: '/v1/app/token/account',
  });
}

/** Pages of lists shift while they are read. */
export function shiftingPages({ sandbox }: World): void {
  sandbox.control.addFault({ kind: 'shifting_pages', count: 2, method: 'GET', path: '*/tokens' });
}

/** Every request is answered by a broken proxy for a while. */
export function badGateway({ sandbox, random }: World): void {
  const count = 3 + Math.floor(random.unit() * 12);
  sandbox.control.addFault({ kind: 'status', status: 502, body: '<html>bad gateway', count });
}
