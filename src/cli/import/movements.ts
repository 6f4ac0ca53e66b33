/**
 * What a file moves, held compactly for a million lines and more: 24 bytes for each movement of a
 * wallet, 32 to 64 for each transaction.
 */
import { createHash } from 'node:crypto';
import { addressKey } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';

/** A change of the balance of a wallet; `line` is absent for one that the ledger has already. */
export interface Movement {
  at: Instant;
  amount: bigint;
  line?: number;
}

export interface Movements {
  add(addr: string, movement: Required<Movement>): void;
  /** How many wallets there are. */
  size(): number;
  /** The wallets with their movements, as they follow one another. */
  wallets(): Generator<{ addr: string; movements: Movement[] }>;
}

const INT64_MAX = 2n ** 63n - 1n;

export function makeMovements(): Movements {
  const numbers = new Map<string, number>();
  const addrs: string[] = [];
  const large = new Map<number, bigint>();
  let count = 0;
  let at = new Float64Array(1024);
  let amount = new BigInt64Array(1024);
  let line = new Uint32Array(1024);
  let wallet = new Uint32Array(1024);

  function grow(): void {
    const size = count * 2;
    const [times, amounts, lines, wallets] = [at, amount, line, wallet];
    at = new Float64Array(size);
    amount = new BigInt64Array(size);
    line = new Uint32Array(size);
    wallet = new Uint32Array(size);
    at.set(times);
    amount.set(amounts);
    line.set(lines);
    wallet.set(wallets);
  }

  const amountOf = (n: number) => large.get(n) ?? amount[n] ?? 0n;
  const compare = (a: number, b: number): number =>
    (wallet[a] ?? 0) - (wallet[b] ?? 0) ||
    (at[a] ?? 0) - (at[b] ?? 0) ||
    Number(amountOf(a) < 0n) - Number(amountOf(b) < 0n) ||
    (line[a] ?? 0) - (line[b] ?? 0);

  return {
    add(addr, movement) {
      if (count === at.length) grow();
      const key = addressKey(addr);
      const number = numbers.get(key) ?? addrs.push(addr) - 1;
      numbers.set(key, number);
      const isLarge = movement.amount > INT64_MAX || movement.amount < -INT64_MAX;
      if (isLarge) large.set(count, movement.amount);
      amount[count] = isLarge ? 0n : movement.amount;
      at[count] = movement.at;
      line[count] = movement.line;
      wallet[count] = number;
      count++;
    },
    size: () => addrs.length,
    *wallets() {
      const order = Uint32Array.from({ length: count }, (_, n) => n).sort(compare);
      for (let start = 0; start < count; ) {
        const number = wallet[order[start] ?? 0] ?? 0;
        const movements: Movement[] = [];
        for (; start < count && wallet[order[start] ?? 0] === number; start++) {
          const n = order[start] ?? 0;
          movements.push({ at: at[n] ?? 0, amount: amountOf(n), line: line[n] ?? 0 });
        }
        yield { addr: addrs[number] ?? '', movements };
      }
    },
  };
}

export interface SeenLines {
  /** Whether an earlier line named this transaction, with the same text or another. */
  add(transaction: string, text: string): 'new' | 'repeated' | 'different';
}

/** A hash table of 64 bits of the transaction and of the text of each line. */
export function makeSeenLines(): SeenLines {
  let names = new BigUint64Array(4096);
  let texts = new BigUint64Array(4096);
  let count = 0;

  const slotOf = (table: BigUint64Array, name: bigint): number => {
    let slot = Number(name % BigInt(table.length));
    while (table[slot] !== 0n && table[slot] !== name) slot = (slot + 1) % table.length;
    return slot;
  };
  function grow(): void {
    const [oldNames, oldTexts] = [names, texts];
    names = new BigUint64Array(oldNames.length * 2);
    texts = new BigUint64Array(oldNames.length * 2);
    for (const [n, name] of oldNames.entries()) {
      if (name === 0n) continue;
      const slot = slotOf(names, name);
      names[slot] = name;
      texts[slot] = oldTexts[n] ?? 0n;
    }
  }

  return {
    add(transaction, text) {
      const [name, hash] = [hashOf(transaction), hashOf(text)];
      const slot = slotOf(names, name);
      if (names[slot] === name) return texts[slot] === hash ? 'repeated' : 'different';
      names[slot] = name;
      texts[slot] = hash;
      if (++count * 2 > names.length) grow();
      return 'new';
    },
  };
}

/** Never 0, which marks an empty slot. */
function hashOf(text: string): bigint {
  return createHash('sha256').update(text).digest().readBigUInt64LE() | 1n;
}
