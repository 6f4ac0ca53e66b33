/** Compares what was found with what happened: every lasting change once, and nothing else. */
import type { Db } from '../../../src/db/connect.ts';
import { addressKey } from '../../../src/kernel/addresses.ts';
import { must } from '../../../src/kernel/errors.ts';
import { type Json, parseJson } from '../../../src/kernel/json.ts';
import { failuresOf, GONE, guaranteedMs, pollableMs, type State, textOf } from './history.ts';
import type { World } from './world.ts';

export interface Verdict {
  changes: number;
  /** Changes that lasted longer than the bound, and so must be found. */
  lasting: number;
  found: number;
  missed: string[];
  /** Found twice, or never there. */
  wrong: string[];
  /** The longest time from a change to its event while the service could be polled. */
  slowestMs: number;
  drifts: number;
}

/**
 * In guaranteed ages: a wallet is found within one, and as a drift by the second poll; a token by a
 * walk that may just have passed its page, its absence by the walk after it and two polls. Each
 * poll that fails is repeated within one more.
 */
const BOUND = { wallet: 2, token: 3 };

interface Row {
  type: string;
  subject: string;
  at: number;
  data: { [key: string]: Json };
}

export async function verdictOf(world: World): Promise<Verdict> {
  const rows = await listEvents(world.db);
  const verdict: Verdict = {
    changes: 0,
    lasting: 0,
    found: 0,
    missed: [],
    wrong: [],
    slowestMs: 0,
    drifts: 0,
  };
  const bySubject = Map.groupBy(rows, ({ subject }) => subject);
  for (const [subject, states] of world.history.states) {
    const own = bySubject.get(subject) ?? [];
    bySubject.delete(subject);
    const isWallet = subject.startsWith('wallet:');
    const found = own.flatMap((row) => (isWallet ? walletState(row) : tokenState(row)));
    compare(world, verdict, { subject, states, found: once(found) });
    if (isWallet) compareDrifts(world, verdict, { subject, states, rows: own });
  }
  for (const subject of bySubject.keys())
    if (/^(wallet|token):/.test(subject)) verdict.wrong.push(`${subject}: never changed`);
  return verdict;
}

async function listEvents(db: Db): Promise<Row[]> {
  const rows = await db.sql<{ type: string; subject: string; at: number; body: string }[]>`
    select type, subject, occurred_at as at, tallyhook.event_body(events) as body
    from tallyhook.events
    order by subject, subject_seq`;
  return rows.map(({ body, ...row }) => {
    const { data } = parseJson(body) as { data: Row['data'] };
    return { ...row, data };
  });
}

function walletState({ type, at, data }: Row): State[] {
  if (type !== 'wallet.observed' && type !== 'wallet.balance_changed') return [];
  return [{ at, value: String((data.current as { balance: Json }).balance) }];
}

function tokenState({ type, at, data }: Row): State[] {
  if (type === 'token.burned') return [{ at, value: GONE }];
  const current = data.current as { [key: string]: Json };
  const owner = addressKey(String(current.owner));
  const { locked, extra_data: extra, last_tx_hash: hash } = current;
  return [{ at, value: [owner, locked, extra, hash].join(' ') }];
}

/** One observation may be several events of a token. */
function once(states: readonly State[]): State[] {
  return states.filter((state, i) => {
    const before = states[i - 1];
    return !before || before.at !== state.at || before.value !== state.value;
  });
}

interface Compared {
  subject: string;
  states: readonly State[];
  found: readonly State[];
}

/** What was found must be states in their order, each once, and all that lasted. */
function compare(world: World, verdict: Verdict, { subject, states, found }: Compared): void {
  const seen = matched(verdict, { subject, states, found });
  let known = states[0]?.value;
  const ages = BOUND[subject.startsWith('wallet:') ? 'wallet' : 'token'];
  for (const [i, state] of states.entries()) {
    // The first state is known before anything changes.
    if (i === 0) continue;
    verdict.changes += 1;
    const until = states[i + 1]?.at ?? world.clock.now();
    const at = seen.get(i);
    if (at !== undefined) {
      verdict.found += 1;
      const ms = pollableMs(world.history, state.at, at);
      verdict.slowestMs = Math.max(verdict.slowestMs, ms);
    }
    const isNew = state.value !== known;
    if (at !== undefined) known = state.value;
    const polls = ages + failuresOf(world.history, subject, state.at, until);
    const boundMs = polls * guaranteedMs(world.history, state.at, until);
    // What came back before a poll was never away for the daemon.
    if (!isNew || pollableMs(world.history, state.at, until) <= boundMs) continue;
    verdict.lasting += 1;
    if (at === undefined) verdict.missed.push(`${subject}: ${textOf(state)}`);
  }
}

/** The states that were found, by their place, with the instant. */
function matched(verdict: Verdict, { subject, states, found }: Compared): Map<number, number> {
  const seen = new Map<number, number>();
  let last = -1;
  for (const one of found) {
    const isIt = ({ at, value }: State) => value === one.value && at <= one.at;
    const place = states.findLastIndex(isIt);
    const isAgain = states[last]?.value === one.value;
    if (place > last && !isAgain) seen.set(place, one.at);
    else verdict.wrong.push(`${subject}: found ${textOf(one)}, ${place} after ${last}`);
    last = Math.max(last, place);
  }
  return seen;
}

/** The open drifts of a wallet sum to what its balance differs from the first one. */
function compareDrifts(
  world: World,
  verdict: Verdict,
  { subject, states, rows }: { subject: string; states: readonly State[]; rows: readonly Row[] },
): void {
  const first = BigInt(must(states[0], 'state').value);
  const found: State[] = [];
  let total = first;
  for (const { type, at, data } of rows) {
    if (type !== 'wallet.drift_opened' && type !== 'wallet.drift_closed') continue;
    if (type === 'wallet.drift_opened') verdict.drifts += 1;
    const amount = BigInt(String(data.amount));
    total += type === 'wallet.drift_opened' ? amount : -amount;
    const last = found.at(-1);
    if (last?.at === at) last.value = total.toString();
    else found.push({ at, value: total.toString() });
  }
  compare(world, verdict, { subject, states, found });
}
