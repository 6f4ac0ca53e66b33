/** The loads: which wallets they use, what they write, and what others change meanwhile. */
import type { Random } from '../../../src/kernel/random.ts';

export type ScenarioName = 'merchant' | 'operator' | 'pair' | 'players' | 'gives';

export interface Scenario {
  name: ScenarioName;
  title: string;
  perS: number;
  /** The wallets under constant traffic; others change these. */
  busy: string[];
  /** The other wallets of the load. */
  others: string[];
  /** Wallet addresses of operators, as the daemon is configured. */
  operators: Record<string, string>;
  /** Least and greatest delay of an exchange with the service, in milliseconds. */
  delayMs: [number, number];
  /**
   * What the first outside change moves: more than all writes together can move that an
   * observation may or may not show.
   */
  change: bigint;
  /** The next write; `name` is the reason type by which it is found everywhere. */
  draw(random: Random, name: string): { path: string; body: object };
}

const below = (random: Random, n: number) => Math.floor(random.unit() * n);
const addr = (letter: string, n: number) => `0x${letter}${String(n).padStart(39, '0')}`;
const many = (letter: string, count: number) =>
  Array.from({ length: count }, (_, n) => addr(letter, n + 1));

/**
 * @param operatorAddr the wallet of operator 1 of the service
 * @param wallets how many `gives` has
 */
export function scenarioOf(name: ScenarioName, operatorAddr: string, wallets: number): Scenario {
  return { merchant, operator, pair, players, gives }[name](operatorAddr, wallets);
}

/** What most of them are like. */
const USUAL: Pick<Scenario, 'operators' | 'delayMs' | 'change'> = {
  operators: {},
  delayMs: [20, 200],
  change: 50_000n,
};

function merchant(): Scenario {
  const [payers, shop] = [many('a', 500), addr('b', 1)];
  return {
    name: 'merchant',
    title: 'transfers/s from 500 payers to one merchant',
    perS: 25,
    busy: [shop],
    others: payers,
    ...USUAL,
    draw: (random, name) =>
      transfer(payers[below(random, payers.length)] ?? '', shop, 1 + below(random, 1_000), name),
  };
}

function operator(operatorAddr: string): Scenario {
  const receivers = many('c', 500);
  return {
    name: 'operator',
    title: 'gives/s from one operator with a wallet to 500 others',
    perS: 50,
    busy: [operatorAddr],
    others: receivers,
    ...USUAL,
    operators: { 1: operatorAddr },
    draw: giveTo(receivers),
  };
}

/** Up to twelve open writes on one wallet can be distinguished, so its answers come sooner. */
function pair(): Scenario {
  const [one, other] = [addr('d', 1), addr('e', 1)];
  return {
    name: 'pair',
    title: 'transfers/s in both directions between two wallets',
    perS: 100,
    busy: [one, other],
    others: [],
    operators: {},
    delayMs: [20, 100],
    change: 10n ** 12n,
    draw(random, name) {
      const [from, to] = random.unit() < 0.5 ? [one, other] : [other, one];
      return transfer(from, to, 1 + below(random, 1_000_000_000), name);
    },
  };
}

/** Few writes, so that a lost answer stands out; with `--reads` apps read the wallets meanwhile. */
function players(): Scenario {
  const all = many('f', 20);
  return {
    name: 'players',
    title: 'transfers/s between twenty wallets',
    perS: 1,
    busy: all.slice(0, 2),
    others: all.slice(2),
    ...USUAL,
    draw(random, name) {
      const from = below(random, all.length);
      const to = (from + 1 + below(random, all.length - 1)) % all.length;
      return transfer(all[from] ?? '', all[to] ?? '', 1 + below(random, 1_000), name);
    },
  };
}

/** Many wallets and no busy one: a write settles when the budget has reached its wallet. */
function gives(_operatorAddr: string, wallets: number): Scenario {
  const receivers = many('c', wallets);
  return {
    name: 'gives',
    title: `gives/s to ${wallets} wallets`,
    perS: 40,
    busy: receivers.slice(0, 2),
    others: receivers.slice(2),
    ...USUAL,
    draw: giveTo(receivers),
  };
}

function giveTo(receivers: string[]): Scenario['draw'] {
  return (random, name) => {
    const toAddr = receivers[below(random, receivers.length)];
    const body = { toAddr, amount: 1 + below(random, 500), reasonType: name };
    return { path: '/v1/app/token/operations/1/give', body };
  };
}

function transfer(fromAddr: string, toAddr: string, amount: number, name: string) {
  const body = { fromAddr, toAddr, amount, feeAmount: 0, reasonType: name };
  return { path: '/v1/app/token/accounts/transfer', body };
}
