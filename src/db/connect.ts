/**
 * The one way to the database: a postgres.js pool, and drizzle over the same pool for simple
 * stores.
 *
 * drizzle's own `drizzle(client)` rewrites the pool's serializers, so it is put together here from
 * its session and dialect instead. Values cross as: numeric ↔ bigint (passed as text), timestamptz
 * ↔ epoch milliseconds, jsonb ↔ lossless JSON. Batches go in as one jsonb parameter
 * (`jsonb_to_recordset`).
 *
 * postgres.js 3.4.9 throws from a timer when a backend dies under load (issues 1066, 1154, 1208):
 * the daemon hands that one exception to `renewAfter`, which replaces the pool; everything else
 * ends the process. No reserved connections and no session locks, because they hang when their
 * backend dies.
 */
import { PgDatabase, PgDialect } from 'drizzle-orm/pg-core';
import { type PostgresJsQueryResultHKT, PostgresJsSession } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { type Instant, isoText, withDeadline } from '../kernel/clock.ts';
import { type Json, jsonText, parseJson } from '../kernel/json.ts';
import { DatabaseError, isRetryable, toDatabaseError } from './sqlstate.ts';

/** Tagged template for SQL; parameters always travel apart from the text. */
export type Sql = postgres.ISql<Record<string, never>>;
export type Orm = PgDatabase<PostgresJsQueryResultHKT, Record<string, never>>;

/** What a store needs: either the pool or an open transaction. */
export interface Queryable {
  sql: Sql;
  orm: Orm;
}
/** An open transaction; a function that takes one cannot be called outside of it. */
export interface Tx extends Queryable {
  readonly transaction: true;
}

export interface Db extends Queryable {
  /**
   * Runs the work in one transaction, again (at most five times) when Postgres asks for it.
   * @throws DatabaseError for what the database refuses, and whatever the work throws
   */
  begin<T>(work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /**
   * Runs work of a single statement, which is a transaction of its own and needs no further round
   * trips; again, and with the same errors, as `begin`.
   * @param deadlineMs how long it is waited for; its statement may still be committed after that
   */
  single<T>(work: (q: Queryable) => Promise<T>, deadlineMs?: number): Promise<T>;
  /** Replaces the pool if this is the driver's known fault; false when it is something else. */
  renewAfter(error: unknown): boolean;
  /** Closes the pool, waiting at most `timeoutMs` for what runs. Harmless twice. */
  end(timeoutMs?: number): Promise<void>;
}

export interface TransactionOptions {
  /** Everything in it is read as of one instant, and a row that changed since is never written. */
  snapshot?: boolean;
  /** For work known to be long, such as a report: how long it may take, in milliseconds. */
  deadlineMs?: number;
}

export interface ConnectOptions {
  url: string;
  /** The role to work as, such as `tallyhook_writer`; absent: the login itself. */
  role?: string;
  /** Connections at most. */
  max?: number;
  /** A statement that runs longer is ended by the server, in milliseconds. */
  statementTimeoutMs?: number;
  name?: string;
}

const TRANSACTION_DEADLINE_MS = 60_000;
const TRIES_MAX = 5;

/** Opens a pool. Nothing is sent before the first query. */
export function connect(options: ConnectOptions): Db {
  let pool = openPool(options);
  const current = (): Queryable => ({ sql: pool as unknown as Sql, orm: ormOver(pool) });
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
      const usualMs = Math.max(TRANSACTION_DEADLINE_MS, options.statementTimeoutMs ?? 0);
      const run = async (sql: postgres.TransactionSql) => {
        // A long work's statements get its whole time.
        if (deadlineMs)
          await sql`select set_config('statement_timeout', ${String(deadlineMs)}, true)`;
        return work(txOver(sql));
      };
      return again(deadlineMs ?? usualMs, () => pool.begin(level, run) as ReturnType<typeof work>);
    },
    single: (work, deadlineMs = TRANSACTION_DEADLINE_MS) => again(deadlineMs, () => work(now)),
    renewAfter(error) {
      if (!isDriverFault(error)) return false;
      const old = pool;
      pool = openPool(options);
      now = current();
      old.end({ timeout: 0 }).catch(() => {});
      return true;
    },
    end: (timeoutMs = 5_000) => pool.end({ timeout: timeoutMs / 1000 }),
  };
}

/** Runs work that Postgres may ask for again, each time with that deadline. */
async function again<T>(deadlineMs: number, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      // A connection that was lost unnoticed leaves its query pending for ever.
      return await withDeadline(work(), deadlineMs, () => {
        throw new DatabaseError('DEADLINE', undefined, undefined);
      });
    } catch (raw) {
      const error = toDatabaseError(raw);
      if (attempt >= TRIES_MAX || !isRetryable(error)) throw error;
    }
  }
}

/** A value as one jsonb parameter: a batch of rows for `jsonb_to_recordset`, or a document. */
export function asJson(value: unknown): never {
  return value as never;
}

function openPool(options: ConnectOptions): postgres.Sql {
  return postgres(options.url, {
    max: options.max ?? 10,
    connect_timeout: 5,
    idle_timeout: 0,
    backoff: (retries: number) => Math.min(1, 0.05 * 2 ** Math.min(retries, 8)),
    onnotice: () => {},
    connection: {
      application_name: options.name ?? 'tallyhook',
      TimeZone: 'UTC',
      // What is looked at under a lock must be what stands once the lock is held.
      default_transaction_isolation: 'read committed',
      statement_timeout: options.statementTimeoutMs ?? 60_000,
      idle_in_transaction_session_timeout: 60_000,
      ...(options.role ? { role: options.role } : {}),
    },
    types: VALUE_TYPES as never,
    // Rows have the column's name in camel case; an alias is needed only where names differ.
    transform: { column: { from: postgres.toCamel } },
  });
}

/** How values cross; numbers are type oids of pg_catalog. */
const VALUE_TYPES = {
  numeric: {
    to: 1700,
    from: [1700],
    serialize: (value: unknown) => String(value),
    parse: (text: string): bigint | string => (/^-?\d+$/.test(text) ? BigInt(text) : text),
  },
  bigint: {
    to: 20,
    from: [20],
    serialize: (value: unknown) => String(value),
    parse: (text: string) => BigInt(text),
  },
  date: {
    to: 1184,
    from: [1184],
    serialize: (value: Instant | string) => (typeof value === 'number' ? isoText(value) : value),
    parse: (text: string): Instant => Date.parse(`${text.replace(' ', 'T').replace(/\+00$/, '')}Z`),
  },
  json: {
    to: 3802,
    from: [114, 3802],
    serialize: (value: unknown) => storable(jsonText(value)),
    parse: (text: string): Json => parseJson(text),
  },
};

/**
 * JSON text as jsonb takes it: NUL and halves of surrogate pairs, which callers and the service may
 * well send, become the replacement character instead of an error that repeats for ever.
 */
function storable(text: string): string {
  if (!/\\u(?:0000|d[89a-f])/.test(text)) return text;
  return text.replace(/\\(?:u[0-9a-f]{4}|.)/g, (written) =>
    /^\\u(?:0000|d[89a-f])/.test(written) ? '\ufffd' : written,
  );
}

function ormOver(client: postgres.Sql | postgres.TransactionSql): Orm {
  const dialect = new PgDialect();
  const session = new PostgresJsSession(client as postgres.Sql, dialect, undefined);
  return new PgDatabase(dialect, session as never, undefined) as unknown as Orm;
}

function txOver(client: postgres.TransactionSql): Tx {
  let orm: Orm | undefined;
  return {
    transaction: true,
    sql: client as unknown as Sql,
    get orm() {
      orm ??= ormOver(client);
      return orm;
    },
  };
}

function isDriverFault(error: unknown): boolean {
  return (
    error instanceof TypeError &&
    /\bnextWrite\b[\s\S]*postgres\/(src|cjs\/src)\/connection\.js/.test(error.stack ?? '')
  );
}
