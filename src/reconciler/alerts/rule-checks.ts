/** What the rules of the configuration find: balances of wallets, unknown operations, drifts. */
import type { Queryable } from '../../db/connect.ts';
import { addressKey } from '../../kernel/addresses.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Alert, Condition } from './rule.ts';

interface WalletRule {
  name: string;
  kind: 'wallet_below' | 'wallet_above';
  addr: string;
  amount: bigint;
}

type ListRule =
  | { name: string; kind: 'unknown_older'; ageMs: number }
  | { name: string; kind: 'drift_above'; amount: bigint };

export type AlertRule = WalletRule | ListRule;

/** What one rule has found. */
interface Finding {
  holding: Condition[];
  /** What holds no more, as it is now. */
  lapsed: Condition[];
}

/** At most so many operations or drifts per rule are raised, oldest first. */
const FOUND_MAX = 1_000;

interface CheckInput {
  now: Instant;
  /** Since when the service has been available; no time counts that is before it. */
  from: Instant;
  raised: readonly Alert[];
}

/** Checks the rules; one whose wallet was not observed yet is left out. */
export async function checkRules(
  db: Queryable,
  rules: readonly AlertRule[],
  input: CheckInput,
): Promise<Map<string, Finding>> {
  const keys = rules.flatMap((rule) => ('addr' in rule ? [addressKey(rule.addr)] : []));
  const balances = await observedBalances(db, keys);
  const found = new Map<string, Finding>();
  for (const rule of rules) {
    const finding = 'addr' in rule ? ofWallet(rule, balances) : await ofList(db, rule, input);
    if (finding) found.set(rule.name, finding);
  }
  return found;
}

function ofWallet(
  { name, kind, addr, amount }: WalletRule,
  balances: Map<string, bigint>,
): Finding | undefined {
  const balance = balances.get(addressKey(addr));
  if (balance === undefined) return undefined;
  const holds = kind === 'wallet_below' ? balance < amount : balance > amount;
  const detail = {
    ...NOTHING,
    kind,
    addr,
    amount: balance.toString(),
    limit: amount.toString(),
  };
  const condition = { rule: name, subject: addressKey(addr), detail };
  return holds ? { holding: [condition], lapsed: [] } : { holding: [], lapsed: [condition] };
}

/** The last processed balances of those wallets that were observed, by key. */
async function observedBalances(
  { sql }: Queryable,
  keys: readonly string[],
): Promise<Map<string, bigint>> {
  if (keys.length === 0) return new Map();
  const rows = await sql<{ key: string; balance: bigint }[]>`
    select key, observed_balance as balance from tallyhook.wallets
    where key = any(${keys as string[]}::text[]) and observed_balance is not null`;
  return new Map(rows.map(({ key, balance }) => [key, balance]));
}

/** The members of events that a rule does not have. */
const NOTHING = {
  addr: null,
  operation_id: null,
  drift_id: null,
  amount: null,
  limit: null,
  limit_ms: null,
};

async function ofList(
  db: Queryable,
  rule: ListRule,
  { now, from, raised }: CheckInput,
): Promise<Finding> {
  const { name, kind } = rule;
  if (kind === 'unknown_older') {
    const before = now - rule.ageMs;
    const old = await listUnknownBefore(db, isoText(before), FOUND_MAX);
    const kept = new Set(raised.flatMap((alert) => (alert.rule === name ? [alert.subject] : [])));
    const holding = old
      .filter((id) => from <= before || kept.has(id))
      .map((id) => {
        const detail = { ...NOTHING, kind, operation_id: id, limit_ms: rule.ageMs };
        return { rule: name, subject: id, detail };
      });
    return { holding, lapsed: [] };
  }
  const drifts = await listDriftsAbove(db, rule.amount, FOUND_MAX);
  const holding = drifts.map(({ id, addr, amount }) => {
    const size = { amount: amount.toString(), limit: rule.amount.toString() };
    return { rule: name, subject: id, detail: { ...NOTHING, kind, addr, drift_id: id, ...size } };
  });
  return { holding, lapsed: [] };
}

/** Unknown operations recorded before then, oldest first. */
async function listUnknownBefore(
  { sql }: Queryable,
  before: string,
  limit: number,
): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from tallyhook.open_operations
    where state = 'unknown' and recorded_at < ${before}::timestamptz
    order by recorded_at limit ${limit}`;
  return rows.map(({ id }) => id);
}

/** Open drifts of more than that, in either direction; what is certain of one that is not exact. */
async function listDriftsAbove(
  { sql }: Queryable,
  amount: bigint,
  limit: number,
): Promise<{ id: string; addr: string; amount: bigint }[]> {
  return sql<{ id: string; addr: string; amount: bigint }[]>`
    select id, addr, amount from (
      select id, addr, opened_at, coalesce(amount, case when amount_min > 0 then amount_min
        when amount_max < 0 then amount_max else 0 end) as amount
      from tallyhook.drifts where closed_at is null) d
    where abs(amount) > ${amount.toString()}::numeric
    order by opened_at limit ${limit}`;
}
