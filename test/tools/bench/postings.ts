/**
 * Postings per second of one writer, by the size of its batches, on one hot account and on many.
 * The reference is pgledger on the same server: `pgledger_create_transfers` with as many transfers
 * per call, from one connection. It is not part of this repository: `--pgledger` names a file with
 * vendor/scoville-pgsql-ulid/*.sql and pgledger.sql of github.com/pgr0ss/pgledger. Ours
 * also reads what is due, marks it as posted, and extends the hash chain.
 */
import { readFile } from 'node:fs/promises';
import postgres from 'postgres';
import { WRITER } from '../../../src/db/access/roles.ts';
import { connect } from '../../../src/db/connect.ts';
import { monotonicMs, systemClock } from '../../../src/kernel/clock.ts';
import { openStages } from '../../harness/stages.ts';
import { execute, openTemporaryServer } from '../../harness/temporary-server.ts';
import { type Bench, figuresOf, type Result, type Sample, sideBySide } from './frame.ts';
import { useEveryCore } from './process.ts';

const WALLETS = 1_000;
/** Postings of one round by the size of the batches. */
const POSTINGS = new Map([
  [1, 400],
  [20, 4_000],
  [100, 10_000],
]);

export const postings: Bench = {
  name: 'postings',
  what: 'transfers posted per second; reference: pgledger_create_transfers',
  target: '2.5 × pgledger at 100 per batch',
  async run({ rounds, pgledger }) {
    useEveryCore();
    const server = await openTemporaryServer('bench');
    try {
      const theirs = pgledger === undefined ? undefined : await openPgledger(server, pgledger);
      const results: Result[] = [];
      try {
        for (const [batch, count] of POSTINGS) {
          const ours = await openOurs(await server.createDatabase(`postings_${batch}`), batch);
          for (const hot of [false, true]) {
            const what = `${batch} per batch, ${hot ? 'one receiver' : `${WALLETS} wallets`}`;
            results.push(await compared(what, rounds, { batch, count, hot }, { ours, theirs }));
          }
          await ours.close();
        }
      } finally {
        await theirs?.close();
      }
      return results;
    } finally {
      await server.close();
    }
  },
};

interface Contest {
  batch: number;
  count: number;
  hot: boolean;
}

interface Writer {
  post(contest: Contest): Promise<Sample>;
  close(): Promise<void>;
}

async function compared(
  what: string,
  rounds: number,
  contest: Contest,
  { ours, theirs }: { ours: Writer; theirs: Writer | undefined },
): Promise<Result> {
  const post = () => ours.post(contest);
  if (theirs) {
    const figures = await sideBySide({ rounds }, post, () => theirs.post(contest));
    const target = contest.batch === 100 ? { target: { of: 'ratio', atLeast: 2.5 } as const } : {};
    return { what, unit: '/s', ...figures, ...target };
  }
  const samples: Sample[] = [];
  for (let round = 0; round < rounds; round++) samples.push(await post());
  return { what, unit: '/s', measured: figuresOf(samples) };
}

async function openOurs(url: string, batch: number): Promise<Writer> {
  await execute(url, 'create sequence bench_numbers');
  const db = connect({ url, role: WRITER, max: 2 });
  const { ledger } = await openStages(db, { clock: systemClock, batchMax: batch });
  return {
    async post({ count, hot }) {
      await execute(url, dueTransfers(count, hot));
      await execute(url, 'analyze tallyhook.operations, tallyhook.due_postings');
      const started = monotonicMs();
      let left = count;
      while (left > 0) {
        const { posted, quarantined } = await ledger.runOnce(systemClock.now());
        if (posted === 0 || quarantined > 0) throw new Error('a transfer was not posted');
        left -= posted;
      }
      return rateOf(count, started);
    },
    close: () => db.end(),
  };
}

function rateOf(count: number, startedMs: number): Sample {
  return { value: count / ((monotonicMs() - startedMs) / 1_000) };
}

const wallet = (n: string) => `'0xuser' || lpad((${n})::text, 36, '0')`;

/** Executed transfers whose postings are due, with their effects. */
function dueTransfers(count: number, hot: boolean): string {
  return `
    with made as (
      insert into tallyhook.operations (id, kind, state, source, owner, key_id, fingerprint,
        key_held, method, path, request_body, from_addr, to_addr, amount, fee_amount, reason_type,
        tx_app_no, tx_log_no, recorded_at, sent_at, answered_at, effective_at, effective_basis)
      select 'op_' || gen_random_uuid(), 'transfer', 'accepted', 'gateway', 'shop', 'key_1', 'f',
        false, 'POST', '/v1/app/token/accounts/transfer', '{}', ${wallet(`n % ${WALLETS} + 1`)},
        ${hot ? wallet('0') : wallet(`(n + 1 + n / ${WALLETS}) % ${WALLETS} + 1`)}, 1 + n % 997,
        0, 'reward', 101, nextval('bench_numbers'), now(), now(), now(), now(), 'answer'
      from generate_series(1, ${count}) n
      returning id, from_addr, to_addr, amount
    ), effects as (
      insert into tallyhook.operation_effects (operation_id, line, account, amount, phase)
      select m.id, e.line, e.account, e.amount, 'executed' from made m cross join lateral (values
        (1, 'wallet:' || m.from_addr, -m.amount), (2, 'wallet:' || m.to_addr, m.amount))
        as e(line, account, amount)
    )
    insert into tallyhook.due_postings (operation_id, due_at) select id, now() from made`;
}

async function openPgledger(
  server: Awaited<ReturnType<typeof openTemporaryServer>>,
  file: string,
): Promise<Writer> {
  const url = await server.createDatabase('pgledger');
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql.unsafe(await readFile(file, 'utf8'));
  const rows = await sql<{ id: string }[]>`
    select a.id from generate_series(0, ${WALLETS}) n
    cross join lateral pgledger_create_account('wallet ' || n, 'TOKEN') a`;
  const ids = rows.map(({ id }) => id);
  let next = 0;
  return {
    async post({ batch, count, hot }) {
      const started = monotonicMs();
      for (let done = 0; done < count; done += batch) {
        const transfers = Array.from({ length: batch }, () => {
          next += 1;
          const from = (next % WALLETS) + 1;
          const to = hot ? 0 : ((next + 1 + Math.floor(next / WALLETS)) % WALLETS) + 1;
          const other = to === from ? 0 : to;
          return `"(${ids[from]},${ids[other]},${1 + (next % 997)})"`;
        });
        await sql`
          select count(*) from pgledger_create_transfers(
            ${`{${transfers.join(',')}}`}::text::transfer_request[])`;
      }
      return rateOf(count, started);
    },
    close: () => sql.end(),
  };
}
