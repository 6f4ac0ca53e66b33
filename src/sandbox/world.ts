/**
 * The state of the whole service, in one place: what it holds, what time it is there, what is due
 * later, what it looked like before. Nothing here knows a rule of the service.
 *
 * It promises that the same seed, the same calls and the same clock give the same state, and that a
 * change is in the journal when `commit` returns. Names of things (hashes, addresses, tokens) come
 * from the seed and a counter, never from randomness.
 */
import type { Clock, Instant } from '../kernel/clock.ts';
import { sha256Hex } from '../kernel/json.ts';
import { type FaultRow, faultRowSchema } from './faults/kinds.ts';
import { makeRateLimit, type RateLimit } from './faults/rate-limit.ts';
import type { Switches } from './faults/switches.ts';
import { type Agenda, makeAgenda } from './state/agenda.ts';
import type { JournalFile } from './state/change-log.ts';
import { makePast, type Past } from './state/past.ts';
import {
  type Contract,
  contractSchema,
  counterSchema,
  type Effect,
  effectSchema,
  type Grant,
  grantSchema,
  type Member,
  memberSchema,
  type Operator,
  operatorSchema,
  type Settings,
  settingsSchema,
  type Token,
  tokenSchema,
  type Wallet,
  walletSchema,
} from './state/records.ts';
import { makeSpending, type Spending } from './state/spending.ts';
import { makeStorage, type Storage } from './state/storage.ts';
import type { ReadTable, Table } from './state/tables.ts';

/** The app that the service was set up for. */
export interface App {
  app_no: bigint;
  name: string;
  client_id: string;
  client_secret: string;
}

export interface World {
  readonly app: App;
  /** The settings of the start, to which a reset goes back. */
  readonly initial: Settings;
  readonly contracts: Table<Contract>;
  readonly tokens: Table<Token>;
  readonly wallets: Table<Wallet>;
  readonly operators: Table<Operator>;
  readonly members: Table<Member>;
  readonly grants: Table<Grant>;
  readonly effects: Table<Effect>;
  readonly faults: Table<FaultRow>;
  readonly agenda: Agenda;
  /** What each wallet sent by transfers within 24 hours. */
  readonly spending: Spending;
  /** The service's own limit of requests. */
  readonly rateLimit: RateLimit;
  settings(): Settings;
  change(patch: Partial<Settings>): void;
  switches(): Switches;
  /** The instant of what is being done; it never goes back, except by a reset. */
  now(): Instant;
  /** What the clock says: the instant that `advance` brings time up to. */
  present(): Instant;
  /** Brings time up to the clock and does what has become due, in order. */
  advance(): void;
  /** The next number of a counter, from 1. */
  next(counter: string): bigint;
  /** How many writes were applied so far. */
  effectsApplied(): bigint;
  /** `digits` hex digits that belong to this seed, this label and this number. */
  hex(label: string, n: bigint, digits: number): string;
  /** A number in [0, 1) that belongs to this seed, this label and this number. */
  draw(label: string, n: bigint): number;
  /** Records that a write was applied. */
  applied(effect: Partial<Effect> & { kind: string }): void;
  /** Wallets and tokens as they were at an instant not long ago. */
  past(at: Instant): { tokens: ReadTable<Token>; wallets: ReadTable<Wallet> };
  /** Writes every change since the last commit to the journal, as one line. */
  commit(): void;
  /** Forgets everything; the caller sows the new world. */
  clear(settings: Settings): void;
  close(): void;
}

/** The most applied writes that are kept; older ones are forgotten. */
const EFFECTS_KEPT = 50_000;
/** The most codes and tokens that are kept; the oldest are forgotten. */
const GRANTS_KEPT = 20_000;

const NO_EFFECT = {
  tx_app_no: null,
  tx_log_no: null,
  tx_hash: null,
  operation_no: null,
  from_addr: null,
  to_addr: null,
  amount: null,
  fee_amount: null,
  reason_type: null,
  contract_id: null,
  token_id: null,
};

/** An empty world, or the one that the committed lines of its journal describe. */
export function makeWorld(
  app: App,
  clock: Clock,
  journal: JournalFile,
  initial: Settings,
  lines: readonly unknown[],
): World {
  const past = makePast(() => at);
  const storage = makeStorage(journal);
  const tables = makeTables(storage, past);
  const counters = storage.table('counters', counterSchema);
  const singles = storage.table('settings', settingsSchema);
  const agenda = makeAgenda();
  const spending = makeSpending();
  const rateLimit = makeRateLimit();
  let at: Instant = Number.NEGATIVE_INFINITY;

  storage.load(lines);
  past.clear();
  for (const effect of tables.effects.values()) spending.note(effect);
  const settings = () => singles.get('world') ?? initial;
  const present = () => Math.max(at, clock.now() + settings().offset_ms);
  const names = makeNames(() => settings().seed);
  const { next, count } = makeCounters(counters);

  return {
    app,
    initial,
    ...tables,
    ...names,
    agenda,
    spending,
    rateLimit,
    settings,
    change: (patch) => singles.put('world', { ...settings(), ...patch }),
    switches: () => settings().switches,
    now: () => at,
    present,
    advance() {
      const until = present();
      for (let due = agenda.take(until); due; due = agenda.take(until)) {
        at = Math.max(at, due.at);
        due.act();
      }
      at = until;
      storage.commit();
    },
    next,
    effectsApplied: () => count('effect'),
    applied(effect) {
      const row = { ...NO_EFFECT, ...effect, n: next('effect'), at };
      tables.effects.put(row.n.toString(), row);
      spending.note(row);
      trim(tables.effects, EFFECTS_KEPT);
    },
    past: (instant) => past.view(instant, tables),
    commit() {
      trim(tables.grants, GRANTS_KEPT);
      storage.commit();
    },
    clear(fresh) {
      storage.clear();
      for (const memory of [agenda, spending, rateLimit, past]) memory.clear();
      singles.put('world', fresh);
      at = clock.now() + fresh.offset_ms;
    },
    close: () => journal.close(),
  };
}

function makeTables(storage: Storage, past: Past) {
  return {
    contracts: storage.table('contracts', contractSchema),
    tokens: storage.table('tokens', tokenSchema, (key, row) => past.note('tokens', key, row)),
    wallets: storage.table('wallets', walletSchema, (key, row) => past.note('wallets', key, row)),
    operators: storage.table('operators', operatorSchema),
    members: storage.table('members', memberSchema),
    grants: storage.table('grants', grantSchema),
    effects: storage.table('effects', effectSchema),
    faults: storage.table('faults', faultRowSchema),
  };
}

function makeCounters(counters: Table<{ value: bigint }>) {
  const count = (counter: string) => counters.get(counter)?.value ?? 0n;
  const next = (counter: string) => {
    counters.put(counter, { value: count(counter) + 1n });
    return count(counter);
  };
  return { count, next };
}

/** Names and draws that belong to a seed, and to nothing else. */
function makeNames(seed: () => number): Pick<World, 'hex' | 'draw'> {
  const hex = (label: string, n: bigint, digits: number) =>
    sha256Hex(`${seed()}:${label}:${n}`).slice(0, digits);
  return { hex, draw: (label, n) => Number.parseInt(hex(label, n, 12), 16) / 2 ** 48 };
}

/** Forgets the oldest rows beyond the bound. */
function trim(table: Table<unknown>, kept: number): void {
  for (const key of table.keys()) {
    if (table.size() <= kept) return;
    table.delete(key);
  }
}
