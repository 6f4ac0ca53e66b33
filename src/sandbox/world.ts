/**
 * The state of the simulated service: records, clock, timers, history. It knows no rule of the
 * service. The same seed, calls and clock give the same state, because hashes, addresses and draws
 * derive from the seed and counters. A change is in the store when `commit` returns.
 */
import type { Clock, Instant } from '../kernel/clock.ts';
import { sha256Hex } from '../kernel/json.ts';
import { faultRowSchema } from './faults/kinds.ts';
import {
  type History,
  makeHistory,
  makeRateLimit,
  makeTimers,
  makeTransferTotals,
} from './state/memory.ts';
import * as records from './state/records.ts';
import { makeTableSet, type Store, type Table, type TableSet } from './state/tables.ts';

/** The developer app that the service is set up for. */
export interface App {
  app_no: bigint;
  name: string;
  client_id: string;
  client_secret: string;
}

export type World = ReturnType<typeof makeWorld>;

/** Bounds on stored applied writes, and on codes and tokens; the oldest are deleted first. */
const EFFECTS_KEPT = 50_000;
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

/**
 * Makes the world that the store has.
 * @param initial the settings that a reset restores
 */
export function makeWorld(app: App, clock: Clock, store: Store, initial: records.Settings) {
  let at: Instant = Number.NEGATIVE_INFINITY;
  const history = makeHistory(() => at);
  const tableSet = makeTableSet(store);
  const tables = makeTables(tableSet, history);
  const { count, next } = makeCounters(tableSet.table('counters', records.counterSchema));
  const singles = tableSet.table('settings', records.settingsSchema);
  const memory = {
    timers: makeTimers(),
    transferTotals: makeTransferTotals(),
    rateLimit: makeRateLimit(),
  };
  const isNew = tableSet.load() === 0;
  history.clear();
  for (const effect of tables.effects.values()) memory.transferTotals.add(effect);
  const settings = () => singles.get('world') ?? initial;
  const present = () => Math.max(at, clock.now() + settings().offset_ms);
  return {
    app,
    initial,
    /** Nothing was stored; the caller clears it and inserts the seed data. */
    isNew,
    ...tables,
    ...memory,
    settings,
    change: (patch: Partial<records.Settings>) => singles.put('world', { ...settings(), ...patch }),
    switches: () => settings().switches,
    now: () => at,
    present,
    /** Moves time to the clock and runs the timers that are due, in order. */
    advance() {
      const until = present();
      for (let due = memory.timers.take(until); due; due = memory.timers.take(until)) {
        at = Math.max(at, due.at);
        due.run();
      }
      at = until;
      tableSet.commit();
    },
    next,
    ...makeDraws(() => settings().seed),
    effectsApplied: () => count('effect'),
    /** Records an applied write. */
    applied(effect: Partial<records.Effect> & { kind: string }) {
      const row = { ...NO_EFFECT, ...effect, n: next('effect'), at };
      tables.effects.put(row.n.toString(), row);
      memory.transferTotals.add(row);
      trim(tables.effects, EFFECTS_KEPT);
    },
    /** Wallets and tokens as they were at a recent instant. */
    asOf: (instant: Instant) => history.at(instant, tables),
    commit() {
      trim(tables.grants, GRANTS_KEPT);
      tableSet.commit();
    },
    /** Empties the world; the caller inserts the seed data. */
    clear(fresh: records.Settings) {
      tableSet.clear();
      for (const each of [history, ...Object.values(memory)]) each.clear();
      singles.put('world', fresh);
      at = clock.now() + fresh.offset_ms;
    },
    close: () => store.close(),
  };
}

/** Numbers each kind of thing from 1. */
function makeCounters(counters: Table<{ value: bigint }>) {
  const count = (counter: string) => counters.get(counter)?.value ?? 0n;
  const next = (counter: string) => {
    counters.put(counter, { value: count(counter) + 1n });
    return count(counter);
  };
  return { count, next };
}

/** Values that depend on the seed, the label and the number only. */
function makeDraws(seed: () => number) {
  const hex = (label: string, n: bigint, digits: number) =>
    sha256Hex(`${seed()}:${label}:${n}`).slice(0, digits);
  return {
    hex,
    /** A number in [0, 1). */
    draw: (label: string, n: bigint) => Number.parseInt(hex(label, n, 12), 16) / 2 ** 48,
  };
}

function makeTables(tableSet: TableSet, history: History) {
  const { tokenSchema, walletSchema } = records;
  return {
    contracts: tableSet.table('contracts', records.contractSchema),
    tokens: tableSet.table('tokens', tokenSchema, (key, row) => history.add('tokens', key, row)),
    wallets: tableSet.table('wallets', walletSchema, (key, row) =>
      history.add('wallets', key, row),
    ),
    operators: tableSet.table('operators', records.operatorSchema),
    members: tableSet.table('members', records.memberSchema),
    grants: tableSet.table('grants', records.grantSchema),
    effects: tableSet.table('effects', records.effectSchema),
    faults: tableSet.table('faults', faultRowSchema),
  };
}

/** Deletes the oldest rows beyond the bound. */
function trim(table: Table<unknown>, kept: number): void {
  for (const key of table.keys()) {
    if (table.size() <= kept) return;
    table.delete(key);
  }
}
