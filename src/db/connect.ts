/**
 * The connection pool: postgres.js, and drizzle over the same pool for simple stores.
 *
 * drizzle is constructed from its session and dialect, because `drizzle(client)` replaces the
 * serializers of the pool. Values are converted as numeric ↔ bigint, timestamptz ↔ epoch
 * milliseconds, and jsonb ↔ JSON with exact numbers. A batch of rows is one jsonb parameter
 * (`jsonb_to_recordset`).
 *
 * postgres.js 3.4.9 throws from a timer when a backend dies under load (issues 1066, 1154, 1208).
 * The daemon passes that exception to `renewAfter`, which replaces the pool. Reserved connections
 * and session locks are not used, because they hang when their backend dies.
 */
import postgres from 'postgres';
import { withDeadline } from '../kernel/clock.ts';
import { poolModeOf, SESSION } from './access/session.ts';
import { ARRAY_TYPES, VALUE_TYPES } from './access/value-types.ts';
import {
  type Core,
  PgDatabase,
  PgDialect,
  type PostgresJsQueryResultHKT,
  PostgresJsSession,
} from './drizzle.ts';
import { boundedSlots, countedSlots, type Slots } from './slots.ts';
import { DatabaseError, isRetryable, toDatabaseError } from './sqlstate.ts';

export type Sql = postgres.ISql;
export type Orm = Core.PgDatabase<PostgresJsQueryResultHKT, Record<string, never>>;

/** The pool or an open transaction. */
export interface Queryable {
  sql: Sql;
  orm: Orm;
}
/** An open transaction. */
export interface Tx extends Queryable {
  readonly transaction: true;
  /** Calls `act` once the transaction is known to be committed; never after a rollback. */
  afterCommit(act: () => void): void;
}

export interface Db extends Queryable {
  /**
   * Runs the work in a transaction, at most five times after serialization failures and deadlocks.
   * @throws DatabaseError, and errors of the work
   */
  begin<T>(work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /**
   * Runs work of a single statement without the round trips of a transaction; retries and errors
   * are those of `begin`. @param deadlineMs after it, the statement may still be committed
   */
  single<T>(work: (q: Queryable) => Promise<T>, deadlineMs?: number): Promise<T>;
  /** Statements and transactions that run or wait for a connection. */
  load(): { running: number; waiting: number };
  /** Replaces the pool if the error is the driver's known fault; else returns false. */
  renewAfter(error: unknown): boolean;
  /** Closes the pool, waiting at most `timeoutMs` for running statements. Idempotent. */
  end(timeoutMs?: number): Promise<void>;
}

interface TransactionOptions {
  /** Uses the isolation level repeatable read. */
  snapshot?: boolean;
  /** For long work such as a report: the deadline of the work and its statements. */
  deadlineMs?: number;
}

interface ConnectOptions {
  /** With `pool_mode=transaction` sessions have the settings of the login. */
  url: string;
  /** The role to set, such as `tallyhook_writer`; by default that of the login. */
  role?: string;
  max?: number;
  /** Statements and transactions that may wait for a connection; unbounded by default. */
  waitingMax?: number;
  statementTimeoutMs?: number;
  /** Where sessions are not kept, sets the timeout for each statement, in its own transaction. */
  eachStatement?: boolean;
  /** Of a statement or transaction; by default a minute, or the statement timeout if longer. */
  deadlineMs?: number;
  name?: string;
}

const DEADLINE_MS = 60_000;
const TRIES_MAX = 5;
/** Opens a pool, which connects at the first query. */
export function connect(options: ConnectOptions): Db {
  const { url, keepsSession } = poolModeOf(options.url);
  const open = () => openPool({ ...options, url }, keepsSession);
  const localMs = !keepsSession && options.eachStatement ? options.statementTimeoutMs : undefined;
  let pool = open();
  const usualMs = options.deadlineMs ?? Math.max(DEADLINE_MS, options.statementTimeoutMs ?? 0);
  const max = options.max ?? 10;
  const current = () => {
    const { waitingMax } = options;
    // Without a session a statement must not be sent behind another: PgBouncer passes the
    // connection on between them.
    const bounded = waitingMax !== undefined || !keepsSession;
    const slots = bounded ? boundedSlots(max, waitingMax ?? Infinity) : countedSlots(max);
    const sql = withDeadlines(pool, usualMs, slots, localMs);
    return {
      slots,
      sql,
      orm: ormOver(sql as postgres.Sql),
      /** For work that has a deadline as a whole. */
      bare: { sql: pool, orm: ormOver(pool) },
    };
  };
  let now = current();
  return {
    get sql() {
      return now.sql;
    },
    get orm() {
      return now.orm;
    },
    async begin(work, { snapshot = false, deadlineMs } = {}) {
      const level = snapshot ? 'isolation level repeatable read' : '';
      let committed: (() => void)[] = [];
      const run = async (sql: postgres.TransactionSql) => {
        const { tx, end, acts } = txOver(sql);
        committed = acts;
        try {
          // Pipelined with the first statement of the work.
          const [, result] = await Promise.all([limitTo(sql, deadlineMs ?? localMs), work(tx)]);
          return result;
        } finally {
          end();
        }
      };
      const ms = deadlineMs ?? usualMs;
      const result = await withRetries(ms, () =>
        now.slots.run(() => pool.begin(level, run) as ReturnType<typeof work>, ms),
      );
      for (const act of committed) act();
      return result;
    },
    single: (work, deadlineMs = usualMs) =>
      withRetries(deadlineMs, () => now.slots.run(() => work(now.bare), deadlineMs)),
    load: () => now.slots.load(),
    renewAfter(error) {
      if (!isDriverFault(error)) return false;
      const old = pool;
      pool = open();
      now = current();
      old.end({ timeout: 0 }).catch(() => {});
      return true;
    },
    end: (timeoutMs = 5_000) => pool.end({ timeout: timeoutMs / 1000 }),
  };
}

async function withRetries<T>(deadlineMs: number, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await withDeadline(work(), deadlineMs, throwDeadline);
    } catch (raw) {
      const error = toDatabaseError(raw);
      if (attempt >= TRIES_MAX || !isRetryable(error)) throw error;
    }
  }
}

/** A connection that was lost unnoticed leaves its statement pending for ever. */
function throwDeadline(): never {
  throw new DatabaseError('DEADLINE', undefined, undefined);
}

/** Until the end of the transaction. */
async function limitTo(sql: postgres.TransactionSql, ms: number | undefined): Promise<void> {
  if (ms) await sql`select set_config('statement_timeout', ${String(ms)}, true)`;
}

/**
 * Statements of the pool itself; those of a transaction have its deadline.
 * @param localMs the timeout of each statement, which then has a transaction of its own
 */
function withDeadlines(
  pool: postgres.Sql,
  ms: number,
  slots: Slots,
  localMs: number | undefined,
): Sql {
  // A statement runs when it is awaited; a fragment never is.
  const bounded = (made: Promise<unknown>, then: typeof made.then) => {
    const run: typeof then = (...args) =>
      withDeadline(
        slots.run(() => new Promise(then), ms),
        ms,
        throwDeadline,
      ).then(...args);
    Reflect.set(made, 'then', run);
    return made;
  };
  return new Proxy(pool, {
    apply(sql, self, values) {
      const made: unknown = Reflect.apply(sql as never, self, values);
      if (!(made instanceof Promise)) return made;
      const limited = async (tx: postgres.TransactionSql) => {
        await limitTo(tx, localMs);
        return Reflect.apply(tx as never, self, values);
      };
      const own = made.then.bind(made);
      return bounded(made, localMs ? (...args) => pool.begin(limited).then(...args) : own);
    },
    get(sql, name) {
      if (name !== 'unsafe') return Reflect.get(sql, name);
      return (...args: Parameters<typeof sql.unsafe>) => {
        const made = sql.unsafe(...args);
        return bounded(made, made.then.bind(made));
      };
    },
  });
}

/** A value as one jsonb parameter: a batch of rows for `jsonb_to_recordset`, or a document. */
export function asJson(value: unknown): never {
  return value as never;
}

function openPool(options: ConnectOptions, keepsSession: boolean): postgres.Sql {
  const session: object = {
    ...SESSION,
    statement_timeout: options.statementTimeoutMs ?? DEADLINE_MS,
    ...(options.role ? { role: options.role } : {}),
  };
  return postgres(options.url, {
    max: options.max ?? 10,
    connect_timeout: 5,
    idle_timeout: 0,
    backoff: (retries: number) => Math.min(1, 0.05 * 2 ** Math.min(retries, 8)),
    onnotice: () => {},
    connection: {
      application_name: options.name ?? 'tallyhook',
      TimeZone: 'UTC',
      ...(keepsSession ? session : {}),
    },
    prepare: keepsSession,
    types: { ...VALUE_TYPES, ...ARRAY_TYPES } as never,
    // If true, each new connection queries array types first, and a failure of that query cannot
    // be handled.
    fetch_types: false,
    // Rows have the column's name in camel case; an alias is needed only where names differ.
    transform: { column: { from: postgres.toCamel } },
  });
}

function ormOver(client: postgres.Sql | postgres.TransactionSql): Orm {
  const dialect = new PgDialect();
  const session = new PostgresJsSession(client as postgres.Sql, dialect, undefined);
  return new PgDatabase(dialect, session as never, undefined) as unknown as Orm;
}

/**
 * When one of several concurrent statements fails, the work of the others may go on. postgres.js
 * would run their next statement on the connection after the rollback, outside of any transaction.
 * So no statement is accepted after `end`.
 */
function txOver(client: postgres.TransactionSql) {
  const acts: (() => void)[] = [];
  let orm: Orm | undefined;
  let hasEnded = false;
  const check = () => {
    if (hasEnded) throw new Error('a statement of a transaction that has ended');
  };
  const sql = new Proxy(client, {
    apply(target, self, args) {
      check();
      return Reflect.apply(target as never, self, args);
    },
    get(target, name) {
      if (name === 'unsafe') check();
      return Reflect.get(target, name);
    },
  });
  const tx: Tx = {
    transaction: true,
    afterCommit: (act) => void acts.push(act),
    sql,
    get orm() {
      orm ??= ormOver(sql);
      return orm;
    },
  };
  return {
    tx,
    acts,
    end() {
      hasEnded = true;
    },
  };
}

function isDriverFault(error: unknown): boolean {
  return (
    error instanceof TypeError &&
    /\bnextWrite\b[\s\S]*postgres\/(src|cjs\/src)\/connection\.js/.test(error.stack ?? '')
  );
}
