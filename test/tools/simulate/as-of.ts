/**
 * Compares balances as of past instants, as they are known now, with what the service held then.
 *
 * The claim: a wallet held its balance in the books, and the drifts that had begun by then. Where
 * one of these is only known to lie in a window, either value is right inside it, and none outside:
 *
 * - a write, between its send and the instant from which the books have it (that of its answer, or
 *   of the poll that showed it), or, if people decided it, until their decision;
 * - the beginning of a drift, between the polls before and after it, also where it was booked;
 * - the end of a drift that returned, between the last poll before the two that confirmed it and
 *   the later of these;
 * - what must have taken back a reported change that no poll showed, and returned: at any time;
 * - several changes that others did not report, and that became one drift or that no two polls in a
 *   row tell apart, since only their sum is known, even if a report explained it: between the polls
 *   before the first and after the last one any value is right.
 *
 * Before the first evidence of a wallet nothing is claimed, nor before its first poll where others
 * changed it before that and did not report it. Every other balance is wrong.
 */
import { addressKey } from '../../../src/kernel/addresses.ts';
import { sumOf } from '../../../src/kernel/amounts.ts';
import { type Instant, isoText } from '../../../src/kernel/clock.ts';
import { must } from '../../../src/kernel/errors.ts';
import { accountKey, accountOfWallet } from '../../../src/operations/operations.ts';
import { type Drift, listDrifts } from '../../../src/reconciler/reconciler.ts';
import { runDry } from '../../ledger/fixture.ts';
import type { Outside } from './outside.ts';
import type { Simulation } from './run.ts';
import { drawsOf, READ_LAG_ASSUMED_MS, type World } from './world.ts';

export interface AsOf {
  instants: number;
  /** Balances that were compared. */
  compared: number;
  /** Of these, inside a window in which either value is right. */
  inWindows: number;
  /** Inside a window of several changes of which only the sum is known. */
  undetermined: number;
  /** Before the first evidence of the wallet. */
  unknown: number;
  wrong: string[];
}

interface Change {
  key: string;
  at: Instant;
  amount: bigint;
}

/** What may be added to the books in a part of time: nothing or an amount between the bounds. */
interface Term {
  key: string;
  /** Excluded, as the balances as of an instant exclude it; the end is included. */
  after: Instant;
  until: Instant;
  min: bigint;
  max: bigint;
  /** Whether it may also be nothing. */
  optional: boolean;
  /** Any value is right. */
  free?: boolean;
  what: string;
}

const DRIFTS_MAX = 100_000;
/** A change is as a rule looked at from so close. */
const NEAR_MS = 600_000;
/** More optional terms are only held between their extremes. */
const SUBSETS_MAX = 12;
const WRONG_LISTED_MAX = 50;

export async function compareAsOf(
  world: World,
  simulation: Simulation,
  instants: number,
): Promise<AsOf> {
  const { db, clock, daemons } = world;
  for (const { ledger } of daemons) await runDry(ledger, clock);
  const changes = changesOf(world, simulation);
  const terms = Map.groupBy(await termsOf(world, simulation), ({ key }) => key);
  const result: AsOf = {
    instants,
    compared: 0,
    inWindows: 0,
    undetermined: 0,
    unknown: 0,
    wrong: [],
  };
  for (const at of drawInstants(world, changes, instants)) {
    const rows = await db.sql<{ account: string; balance: bigint | null }[]>`
      select account, balance from finance_v1.balances_as_of(${isoText(at)}::timestamptz)`;
    const books = new Map(rows.map((row) => [accountKey(row.account), row.balance]));
    for (const [key, held] of heldAt(world, changes, at)) {
      const balance = books.get(accountOfWallet(key));
      const around = (terms.get(key) ?? []).filter((term) => term.after < at && at <= term.until);
      judge(result, { key, at, held, balance, around });
    }
  }
  return result;
}

/** What each wallet that can be read held just before the instant, by key of its address. */
function heldAt(
  world: World,
  changes: ReadonlyMap<string, readonly Change[]>,
  at: Instant,
): Map<string, bigint> {
  const { users, singles, books, sandbox } = world;
  const keys = new Set([...users, ...singles, ...books.operators.values()].map(addressKey));
  return new Map(
    [...keys].map((key) => {
      const later = (changes.get(key) ?? []).filter((change) => change.at >= at);
      const present = sandbox.world.wallets.get(key)?.balance ?? 0n;
      return [key, present - sumOf(later.map(({ amount }) => amount))];
    }),
  );
}

function judge(
  result: AsOf,
  found: {
    key: string;
    at: Instant;
    held: bigint;
    balance: bigint | null | undefined;
    around: readonly Term[];
  },
): void {
  const { key, at, held, balance, around } = found;
  if (balance == null) {
    result.unknown += 1;
    return;
  }
  if (around.some(({ free }) => free)) {
    result.undetermined += 1;
    return;
  }
  result.compared += 1;
  if (around.some(({ optional, min, max }) => optional || min !== max)) result.inWindows += 1;
  if (isExplained(held - balance, around) || result.wrong.length >= WRONG_LISTED_MAX) return;
  const parts = around.map(({ what, min, max, optional }) => {
    const amount = min === max ? `${min}` : `${min} to ${max}`;
    return `${what} ${amount}${optional ? ' or nothing' : ''}`;
  });
  result.wrong.push(
    `${key} as of ${isoText(at)}: held ${held}, books ${balance}, ${parts.join(', ') || 'no more'}`,
  );
}

function isExplained(difference: bigint, terms: readonly Term[]): boolean {
  const certain = terms.filter(({ optional }) => !optional);
  const optional = terms.filter((term) => term.optional);
  const low = difference - sumOf(certain.map(({ max }) => max));
  const high = difference - sumOf(certain.map(({ min }) => min));
  const ranges =
    optional.length > SUBSETS_MAX ? [hullOf(optional)] : optional.reduce(withTerm, [NOTHING]);
  return ranges.some(({ min, max }) => min <= high && max >= low);
}

type Bounds = Pick<Term, 'min' | 'max'>;
const NOTHING: Bounds = { min: 0n, max: 0n };

function withTerm(sums: readonly Bounds[], term: Bounds): Bounds[] {
  const more = sums.map(({ min, max }) => ({ min: min + term.min, max: max + term.max }));
  return [...sums, ...more];
}

function hullOf(terms: readonly Bounds[]): Bounds {
  return {
    min: sumOf(terms.map(({ min }) => (min < 0n ? min : 0n))),
    max: sumOf(terms.map(({ max }) => (max > 0n ? max : 0n))),
  };
}

/** Half of them anywhere in the time of the simulation, half near a change of a balance. */
function drawInstants(
  world: World,
  changes: ReadonlyMap<string, readonly Change[]>,
  count: number,
): Instant[] {
  const random = drawsOf(world.plan, 'as-of', 0);
  const all = [...changes.values()].flat();
  const first = Math.min(...all.map(({ at }) => at));
  const end = world.clock.now();
  return Array.from({ length: all.length === 0 ? 0 : count }, (_, n) => {
    if (n % 2 === 0) return Math.round(first + random.unit() * (end - first));
    const { at } = must(all[Math.floor(random.unit() * all.length)], 'a change');
    const distance = Math.round(NEAR_MS ** random.unit());
    return Math.min(end, at + (random.unit() < 0.5 ? distance : -distance));
  });
}

/**
 * Every change of a balance, by key of the wallet's address.
 * @throws Error when they do not lead from the first balance to the present one
 */
function changesOf(world: World, { outside }: Simulation): Map<string, Change[]> {
  const { sandbox, users } = world;
  const { effects, wallets, operators } = sandbox.world;
  const changes: Change[] = outside.map(({ addr, amount, at }) => ({
    key: addressKey(addr),
    at,
    amount,
  }));
  if (BigInt(effects.size()) < sandbox.world.effectsApplied())
    throw new Error('the sandbox has forgotten effects');
  for (const { from_addr, to_addr, amount, fee_amount, at } of effects.values()) {
    if (amount === null) continue;
    const fee = fee_amount ?? 0n;
    const feeAddr = operators.get(String(sandbox.world.switches().fee_operator))?.addr ?? '';
    changes.push(
      { key: addressKey(from_addr ?? ''), at, amount: -amount - fee },
      { key: addressKey(to_addr ?? ''), at, amount },
      { key: addressKey(feeAddr), at, amount: fee },
    );
  }
  const byKey = Map.groupBy(
    changes.filter(({ amount }) => amount !== 0n),
    ({ key }) => key,
  );
  for (const key of users.map(addressKey)) {
    const first = (wallets.get(key)?.balance ?? 0n) - sumOf((byKey.get(key) ?? []).map(amountOf));
    if (first !== FIRST_BALANCE) throw new Error(`${key}: unexplained ${first - FIRST_BALANCE}`);
  }
  return byKey;
}

const amountOf = ({ amount }: Change) => amount;
const FIRST_BALANCE = 1_000_000n;

async function termsOf(world: World, simulation: Simulation): Promise<Term[]> {
  const known = [...(await writeTerms(world)), ...(await driftTerms(world, simulation))];
  return [...known, ...unseenTerms(simulation)];
}

/** Changes of a wallet that no two polls in a row tell apart, or that its opening contains. */
function unseenTerms({ outside, polls }: Simulation): Term[] {
  const brackets = outside.filter(isUnreported).map(({ addr, at }) => {
    const key = addressKey(addr);
    const seen = polls.get(key) ?? [];
    const before = seen.findLast((poll) => poll < at) ?? Number.NEGATIVE_INFINITY;
    const after = seen.filter((poll) => poll - READ_LAG_ASSUMED_MS >= at);
    const isInOpening = before === Number.NEGATIVE_INFINITY;
    const until = after[isInOpening ? 0 : 1] ?? Number.POSITIVE_INFINITY;
    return { key, after: before - READ_LAG_ASSUMED_MS, until, isInOpening };
  });
  return brackets.flatMap(({ isInOpening, ...bracket }, n): Term[] => {
    const joint = brackets.filter(
      (other, m) =>
        m !== n &&
        other.key === bracket.key &&
        other.after < bracket.until &&
        bracket.after < other.until,
    );
    return joint.length > 0 || isInOpening ? [{ ...bracket, ...ANY }] : [];
  });
}

const isUnreported = ({ reportedAt }: Outside) => reportedAt === undefined;
const ANY = { min: 0n, max: 0n, optional: true, free: true, what: 'several changes' };

/** What no poll showed: a report says what others must have taken back. */
function contradictsReport({ evidence }: Drift): boolean {
  return typeof evidence === 'object' && evidence !== null && 'contradicts' in evidence;
}

/** Writes that the service may have applied before the books have them, or later. */
async function writeTerms({ db }: World): Promise<Term[]> {
  const rows = await db.sql<
    {
      key: string;
      amount: bigint;
      id: string;
      outcome: string;
      basis: string | null;
      sentAt: Instant;
      effectiveAt: Instant | null;
      executedAt: Instant | null;
    }[]
  >`
    select substr(lower(e.account), 8) as key, sum(e.amount) as amount, o.id, o.outcome,
      o.effective_basis as basis, o.sent_at, o.effective_at, (
        select min(t.at) from tallyhook.transitions t
        where t.operation_id = o.id and t.to_state in ('accepted', 'executed')) as executed_at
    from tallyhook.operations o
    join tallyhook.operation_effects e on e.operation_id = o.id
    where o.sent_at is not null and o.outcome <> 'not_executed' and e.account like 'wallet:%'
    group by 1, o.id having sum(e.amount) <> 0`;
  return rows.flatMap(({ key, amount, id, outcome, basis, sentAt, effectiveAt, executedAt }) => {
    const term = { key, min: amount, max: amount, optional: true, what: id };
    if (outcome === 'open') return { ...term, after: sentAt, until: Number.POSITIVE_INFINITY };
    const at = effectiveAt ?? sentAt;
    const ahead = { ...term, after: sentAt, until: at };
    if (basis !== 'decision') return ahead;
    const late = { ...term, min: -amount, max: -amount, after: at, until: executedAt ?? at };
    return [ahead, late];
  });
}

async function driftTerms({ db }: World, { polls, outside }: Simulation): Promise<Term[]> {
  const drifts = await listDrifts(db, {}, { limit: DRIFTS_MAX });
  const from = ({ windowFrom }: { windowFrom: Instant | null }) =>
    (windowFrom ?? Number.NEGATIVE_INFINITY) - READ_LAG_ASSUMED_MS;
  return drifts.flatMap((drift): Term[] => {
    const { walletKey: key, id, min, max, state, windowTo, suspectedAt } = drift;
    const term = { key, min, max, optional: true, what: `${state} ${id}` };
    const begins = { ...term, after: from(drift), until: windowTo };
    const changes = outside.filter(
      (change) =>
        isUnreported(change) &&
        addressKey(change.addr) === key &&
        change.at > begins.after &&
        change.at <= windowTo,
    );
    const free = changes.length > 1;
    const certain = { ...term, optional: false, after: windowTo };
    switch (state) {
      case 'open':
      case 'proposed':
        return [
          { ...begins, free },
          { ...certain, until: Number.POSITIVE_INFINITY },
        ];
      case 'booked':
        return [
          { ...begins, until: suspectedAt, free },
          { ...begins, after: suspectedAt, min: -max, max: -min, free },
        ];
      case 'returned': {
        const seenAt = Date.parse(String(Object(drift.closedBy).observed_at));
        if (contradictsReport(drift)) return [{ ...begins, until: seenAt, free }];
        const before = (polls.get(key) ?? []).filter((poll) => poll <= seenAt).at(-3);
        const endsAfter = Math.max(windowTo, (before ?? windowTo) - READ_LAG_ASSUMED_MS);
        return [
          { ...begins, free },
          { ...certain, until: endsAfter },
          { ...term, after: endsAfter, until: seenAt },
        ];
      }
      default:
        // Something else stands for it now, but its polls still tell the changes not apart.
        return free ? [{ ...begins, free }] : [];
    }
  });
}
