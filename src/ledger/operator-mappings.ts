/**
 * The wallets of operators that two owners map while daemons run: one proposes, another approves.
 * What the settings file of a daemon names wins over them. Every daemon has them in its map before
 * it works, and reads them again with each heartbeat, so that none that may send has an older map
 * than its last heartbeat. What one recorded without knowing of a mapping, `operator-wallets.ts`
 * moves.
 */
import type { Queryable, Sql, Tx } from '../db/connect.ts';
import type { Context } from '../db/context.ts';
import { sameAddress } from '../kernel/addresses.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { Failure, must } from '../kernel/errors.ts';
import {
  accountKey,
  accountOfWallet,
  approve,
  newestDecisions,
  type Person,
  propose,
} from '../operations/operations.ts';
import type { operator, operatorDetail } from '../resources/ledger/operator.ts';
import type { Row } from '../resources/resource.ts';
import { openingsOf } from './openings.ts';
import { countPostedGives } from './operator-wallets.ts';

type Operator = Row<typeof operator>;
type OperatorDetail = Row<typeof operatorDetail>;
/** The ledger does not know of drifts. */
export interface MappedOperator extends Operator {
  effect: Omit<NonNullable<OperatorDetail['effect']>, 'drifts'> | null;
}

interface OperatorPage {
  after: bigint | undefined;
  limit: number;
  proposed: boolean;
}

export interface OperatorMappings {
  /** Reads which mappings are in force. */
  load(q: Queryable): Promise<void>;
  /** Operators with a wallet or a proposal, or only with one that waits, by their numbers. */
  list(page: OperatorPage): Promise<Operator[]>;
  /** One with what an approval of the proposal that waits would do. */
  find(no: bigint): Promise<MappedOperator>;
  /**
   * Proposes a wallet; of a dry run the answer says what an approval would do.
   * @throws Failure `conflict` when the operator has a wallet or a proposal that waits, or the
   * wallet belongs to another operator
   */
  propose(
    no: bigint,
    proposal: { addr: string; reason: string; dryRun?: boolean | undefined },
    by: Person,
  ): Promise<MappedOperator>;
  /**
   * Puts the mapping in force, and has its wallet polled at once.
   * @param n the proposal that was read
   * @throws Failure `same_owner`, or `conflict` when it does not wait, or as for a proposal
   */
  approve(no: bigint, n: number | undefined, by: Person): Promise<MappedOperator>;
  /** The proposer withdraws it so. @throws Failure `conflict` when it does not wait */
  reject(
    no: bigint,
    rejected: { n?: number | undefined; reason: string },
    by: Person,
  ): Promise<MappedOperator>;
}

interface Deps extends Pick<Context, 'db' | 'clock'> {
  /** What all stages hold: those of the settings file, to which the mapped ones are added. */
  operators: Map<string, string>;
  /** Has a wallet polled from now on, and at once. */
  observe(tx: Tx, addr: string, at: Instant): Promise<void>;
  /** A mapping came into force. */
  onMapped(): void;
}

export function makeOperatorMappings(deps: Deps): OperatorMappings {
  const { db, clock, operators, observe, onMapped } = deps;
  const named: ReadonlyMap<string, string> = new Map(operators);

  // A mapping in force never ends, so an answer that is late takes nothing back.
  async function load(q: Queryable): Promise<void> {
    const mapped = await q.sql<{ no: string; addr: string }[]>`
      select operator_no::text as no, addr from tallyhook.mapped_operators`;
    const added = mapped.filter(({ no }) => !operators.has(no));
    for (const { no, addr } of added) operators.set(no, addr);
    if (added.length > 0) onMapped();
  }

  /** @throws Failure `conflict` */
  async function assertFree(tx: Tx, no: bigint, addr: string): Promise<void> {
    const own = named.get(String(no));
    if (own !== undefined)
      throw refusal(no, `the settings file names its wallet, ${own}, and wins: change it there`);
    const others = [...named].map(([other, wallet]) => ({ other, wallet }));
    const stored = await tx.sql<{ other: string; wallet: string }[]>`
      select substr(account, 10) as other, addr as wallet from tallyhook.operator_wallets
      where rejected_at is null and lower(addr) = lower(${addr})`;
    for (const { other, wallet } of [...others, ...stored])
      if (other !== String(no) && sameAddress(wallet, addr))
        throw refusal(no, `the wallet is that of operator ${other}, or proposed to be`);
  }

  /** Decisions about mappings are made one after another. */
  const decide = (work: (tx: Tx, now: Instant) => Promise<void>) =>
    db.begin(async (tx) => {
      await tx.sql`
        select pg_advisory_xact_lock(hashtextextended('tallyhook operator wallets', 0))`;
      await work(tx, clock.now());
    });

  const find = async (no: bigint, proposed?: string): Promise<MappedOperator> => {
    const [found] = await listOperators(db, named, { only: no });
    const operator = found ?? { operatorNo: no, addr: null, source: null, proposal: null };
    const { proposal } = operator;
    const addr = proposed ?? (proposal?.state === 'proposed' ? proposal.addr : undefined);
    return { ...operator, effect: addr === undefined ? null : await effectOf(db, no, addr) };
  };

  return {
    load,
    list: (page) => listOperators(db, named, page),
    find,
    async propose(no, { addr, reason, dryRun = false }, by) {
      await decide(async (tx, now) => {
        await assertFree(tx, no, addr);
        const [present] = await listPresent(tx, no);
        if (present) throw refusal(no, `${present.addr} is mapped to it, or proposed to be`);
        if (dryRun) return;
        const subject = subjectOf(no);
        const proposal = { subject, decision: addr, operationId: null, reason };
        const { n } = await propose(tx, proposal, { amount: 0n }, by, now);
        await tx.sql`
          insert into tallyhook.operator_wallets (account, n, addr)
          values (${subject}, ${n}, ${addr})`;
      });
      return find(no, addr);
    },
    async approve(no, n, by) {
      await decide(async (tx, now) => {
        const { addr } = await presentOf(tx, no, n);
        await assertFree(tx, no, addr);
        await approve(tx, subjectOf(no), { n, decision: addr }, by, now);
        await observe(tx, addr, now);
      });
      await load(db);
      return find(no);
    },
    async reject(no, { n, reason }, { owner }) {
      await decide(async (tx, now) => {
        const present = await presentOf(tx, no, n);
        await tx.sql`
          update tallyhook.operator_wallets set rejected_by = ${owner},
            rejected_at = ${isoText(now)}, reject_reason = ${reason}
          where account = ${subjectOf(no)} and n = ${present.n}`;
      });
      return find(no);
    },
  };
}

const subjectOf = (no: bigint) => `operator:${no}`;

function refusal(no: bigint, why: string): Failure {
  return new Failure('conflict', `operator ${no}: ${why}`, { operator_no: String(no) });
}

/** The mapping that is in force or proposed. */
function listPresent({ sql }: Queryable, no: bigint): Promise<{ n: number; addr: string }[]> {
  return sql<{ n: number; addr: string }[]>`
    select n::int as n, addr from tallyhook.operator_wallets
    where account = ${subjectOf(no)} and rejected_at is null`;
}

/** The proposal that waits. @throws Failure `conflict` */
async function presentOf(tx: Tx, no: bigint, n: number | undefined) {
  const [present] = await listPresent(tx, no);
  const decision = (await newestDecisions(tx, [subjectOf(no)])).get(subjectOf(no));
  if (!present || decision?.approvedAt !== null)
    throw refusal(no, 'nothing waits for approval; propose first');
  if (n !== undefined && n !== present.n)
    throw refusal(no, `the proposal that waits is number ${present.n}; read it first`);
  return present;
}

/** The numbers of operators whose proposed wallet waits for another owner. */
function waiting(sql: Sql) {
  return sql`select substr(account, 10)::numeric from tallyhook.operator_wallets
    where rejected_at is null except select operator_no from tallyhook.mapped_operators`;
}

/** How many these are, counted up to `max`. */
export async function countProposedOperators({ sql }: Queryable, max: number): Promise<number> {
  const rows = await sql<{ n: number }[]>`
    select count(*)::int as n from (select from (${waiting(sql)}) w limit ${max}) x`;
  return rows[0]?.n ?? 0;
}

async function listOperators(
  db: Queryable,
  named: ReadonlyMap<string, string>,
  page: { only: bigint } | OperatorPage,
): Promise<Operator[]> {
  const { sql } = db;
  const which =
    'only' in page
      ? sql`where k.operator_no = ${String(page.only)}::numeric`
      : sql`where k.operator_no > ${String(page.after ?? -1n)}::numeric
            and (not ${page.proposed} or k.operator_no in (${waiting(sql)}))
          order by k.operator_no limit ${page.limit}`;
  const rows = await sql<(Omit<Operator, 'proposal'> & Stored)[]>`
    with named as (
      select s.operator_no, s.addr
      from unnest(${[...named.keys()]}::numeric[], ${[...named.values()]}::text[])
        as s(operator_no, addr)
    ), newest as (
      select distinct on (account) substr(account, 10)::numeric as operator_no, account,
        rejected_by, rejected_at, reject_reason
      from tallyhook.operator_wallets order by account, n desc
    ), known as (
      select operator_no from named union select operator_no from newest
    )
    select k.operator_no, coalesce(s.addr, m.addr) as addr, case when s.addr is not null
        then 'setting' when m.addr is not null then 'mapping' end as source,
      w.account, w.rejected_by, w.rejected_at, w.reject_reason
    from known k left join named s on s.operator_no = k.operator_no
    left join tallyhook.mapped_operators m on m.operator_no = k.operator_no
    left join newest w on w.operator_no = k.operator_no ${which}`;
  const accounts = rows.flatMap(({ account }) => account ?? []);
  const decisions = await newestDecisions(db, accounts);
  return rows.map(({ account, rejectedBy, rejectedAt, rejectReason, ...row }) => {
    if (account === null) return { ...row, proposal: null };
    const { decision: addr, ...decision } = must(decisions.get(account), 'decision of a mapping');
    const { approvedAt } = decision;
    const state = rejectedAt ? 'rejected' : approvedAt === null ? 'proposed' : 'active';
    const rejected = { rejectedBy, rejectedAt, rejectReason };
    return { ...row, proposal: { ...decision, addr, state, ...rejected } };
  });
}

type Stored = { account: string | null } & Pick<
  NonNullable<Operator['proposal']>,
  'rejectedBy' | 'rejectedAt' | 'rejectReason'
>;

async function effectOf(
  db: Queryable,
  no: bigint,
  addr: string,
): Promise<MappedOperator['effect']> {
  const account = accountOfWallet(addr);
  const opening = (await openingsOf(db, [account])).get(accountKey(account));
  const since = opening?.seenAt ?? null;
  return { addr, since, gives: since === null ? 0 : await countPostedGives(db, String(no), since) };
}
