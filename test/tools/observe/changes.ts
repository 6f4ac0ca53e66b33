/** What happens behind the daemons: changes of wallets and tokens, and faults of the service. */
import { addressKey } from '../../../src/kernel/addresses.ts';
import type { FaultInput } from '../../../src/sandbox/faults/kinds.ts';
import type { Token } from '../../../src/sandbox/state/records.ts';
import { addr } from '../../ledger/builders.ts';
import { GONE, noteState, tokenSubject, tokenValue, walletSubject } from './history.ts';
import { CONTRACT, type World } from './world.ts';

/** Any two sets of such amounts have different sums, as good as surely. */
const AMOUNT_DIGITS = 30;

const below = ({ random }: World, n: number) => Math.floor(random.unit() * n);

/** Notes everything as it is at the start. */
export function noteAll(world: World): void {
  const { sandbox, history, clock, wallets } = world;
  // The chain has completed what the seed made.
  sandbox.world.advance();
  const at = clock.now();
  for (const wallet of wallets) noteWallet(world, wallet);
  for (const token of tokensOf(world))
    noteState(history, tokenSubject(token), { at, value: tokenValue(token) });
}

function noteWallet({ sandbox, history, clock }: World, wallet: string): void {
  const balance = sandbox.world.wallets.get(addressKey(wallet))?.balance ?? 0n;
  noteState(history, walletSubject(wallet), { at: clock.now(), value: balance.toString() });
}

function tokensOf({ sandbox }: World): Token[] {
  return [...sandbox.world.tokens.values()].filter(({ contract_id }) => contract_id === CONTRACT);
}

/** Changes a balance by a new amount, or takes back the last change of the wallet. */
export function changeWallet(world: World): void {
  const { wallets, sandbox, history } = world;
  const wallet = wallets[below(world, wallets.length)] ?? '';
  const [last, before] = (history.states.get(walletSubject(wallet)) ?? []).toReversed();
  const digits = Array.from({ length: AMOUNT_DIGITS }, () => 1 + below(world, 9)).join('');
  const back = below(world, 5) === 0 && last && before;
  const delta = back
    ? BigInt(before.value) - BigInt(last.value)
    : BigInt(digits) * (below(world, 3) === 0 ? -1n : 1n);
  sandbox.control.setWallet(wallet, { delta });
  noteWallet(world, wallet);
}

/** Mints, moves, marks, locks or burns a token of the watched contract. */
export function changeToken(world: World): void {
  const { sandbox, history, clock } = world;
  const all = tokensOf(world);
  const token = all[below(world, all.length)];
  const dice = below(world, 10);
  const at = clock.now();
  if (!token || dice < 2) {
    // Numbers of new tokens are anywhere in the list.
    const id = BigInt(1 + below(world, 1_000_000_000));
    if (sandbox.world.tokens.get(`${CONTRACT}:${id}`)) return;
    const made = sandbox.control.setToken(CONTRACT, id, { owner: addr(below(world, 9)) });
    noteState(history, tokenSubject(made), { at: 0, value: GONE });
    noteState(history, tokenSubject(made), { at, value: tokenValue(made) });
    return;
  }
  if (dice < 4) {
    sandbox.control.removeToken(CONTRACT, token.token_id);
    noteState(history, tokenSubject(token), { at, value: GONE });
    return;
  }
  const change =
    dice < 7
      ? { owner: `0x0FF${String(below(world, 1_000_000)).padStart(37, '0')}` }
      : dice < 9
        ? { extra: JSON.stringify({ n: below(world, 1_000_000) }) }
        : { locked: !token.locked };
  const changed = sandbox.control.setToken(CONTRACT, token.token_id, change);
  noteState(history, tokenSubject(token), { at, value: tokenValue(changed) });
}

/** A fault of the service; returns the deadlines that it will set, in seconds or as a date. */
export function addFault(world: World): Throttle[] {
  const { sandbox } = world;
  const count = 1 + below(world, 4);
  const polls = { method: 'GET', path: '/v1/*' };
  const list = { ...polls, path: '*/tokens' };
  const dice = below(world, 20);
  if (dice < 4) return throttle(world);
  if (dice === 4) {
    sandbox.control.maintenance({ state: 'on', duration_ms: 30_000 + below(world, 90_000) });
    return [];
  }
  const faults: FaultInput[] = [
    { kind: 'dropped', ...polls, count },
    { kind: 'truncated', ...polls, count },
    { kind: 'garbled', ...polls, count },
    { kind: 'status', status: 502, body: '<html>bad gateway', ...polls, count: 3 * count },
    { kind: 'shifting_pages', ...list, count },
    { kind: 'stale_list', ...list, age_ms: 1_000 + below(world, 60_000), count },
    // Single reads lag no more than the settings assume.
    { kind: 'stale_list', ...polls, age_ms: 100 + below(world, 800), path: '*/account', count },
  ];
  const fault = faults[below(world, faults.length)];
  if (fault) sandbox.control.addFault(fault);
  return [];
}

/** An answer that asks to wait. */
export interface Throttle {
  form: 'seconds' | 'date' | 'none';
  seconds: number;
}

function throttle(world: World): Throttle[] {
  const form = (['seconds', 'date', 'none'] as const)[below(world, 3)] ?? 'none';
  const seconds = 1 + below(world, 120);
  const count = 1 + below(world, 2);
  const status = below(world, 4) === 0 ? 503 : 429;
  world.sandbox.control.addFault({
    kind: 'throttle',
    status,
    retry_after: form,
    retry_after_s: seconds,
    count,
    method: 'GET',
    path: '/v1/*',
  });
  return Array.from({ length: count }, () => ({ form, seconds }));
}
