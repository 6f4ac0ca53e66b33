/**
 * The connection pool: postgres.js, and drizzle over it for simple stores.
 *
 * Values are converted as numeric ↔ bigint, timestamptz ↔ epoch milliseconds, and jsonb ↔ JSON with
 * exact numbers. A batch of rows is one jsonb parameter (`jsonb_to_recordset`). drizzle only writes
 * SQL and runs it by a callback, because its own driver replaces the serializers of the pool.
 *
 * postgres.js 3.4.9 throws from a timer when a backend dies under load (issues 1066, 1154, 1208).
 * The daemon passes that exception to `renewAfter`, which replaces the pool. Reserved connections
 * and session locks are not used, because they hang when their backend dies.
 */
import postgres from 'postgres';
import { monotonicMs, withDeadline } from '../kernel/clock.ts';
import { SESSION } from './access/session.ts';
import { ARRAY_TYPES, VALUE_TYPES } from './access/value-types.ts';
import { LONG_LOGIN } from './connection/log-in.ts';
import { type DriverOptions, openSocket } from './connection/open-socket.ts';
import { type ConnectionSettings, parseConnection } from './connection/settings.ts';
import { drizzle, type PgRemoteDatabase } from './drizzle.ts';
import { DatabaseError, isRetryable, toDatabaseError } from './sqlstate.ts';

/** SQL that runs when it is awaited, and is a part of other SQL when it is one of its values. */
export interface Sql {
  /** Identifiers. */
  (...names: [string, ...string[]]): postgres.Helper<string>;
  /** After `insert into …`: columns with their values. */
  (row: { readonly [column: string]: unknown }): postgres.Helper<string>;
  <T extends readonly (object | undefined)[] = postgres.Row[]>(
    text: TemplateStringsArray,
    ...values: readonly (postgres.SerializableParameter | postgres.Fragment)[]
  ): postgres.PendingQuery<T>;
  unsafe<T extends object[] = postgres.Row[]>(
    text: string,
    values?: postgres.ParameterOrJSON<never>[],
  ): postgres.PendingQuery<T>;
}
export type Orm = PgRemoteDatabase;

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
  const deadlineMs = options.deadlineMs ?? Math.max(DEADLINE_MS, options.statementTimeoutMs ?? 0);
  const settings = parseConnection(options.url);
  const open = () => openPool({ ...options, settings, deadlineMs });
  let pool = open();
  return {
    get sql() {
      return pool.statements.sql;
    },
    get orm() {
      return pool.statements.orm;
    },
    // What waits for a slot while the pool is replaced runs on the new one, as do retries.
    async begin(work, options = {}) {
      const ms = options.deadlineMs ?? deadlineMs;
      const { result, acts } = await withRetries(ms, () =>
        pool.slots.run(() => pool.transaction(work, options), ms),
      );
      for (const act of acts) act();
      return result;
    },
    single: (work, ms = deadlineMs) =>
      withRetries(ms, () => pool.slots.run(() => work(pool.bare), ms)),
    load: () => pool.slots.load(),
    renewAfter(error) {
      if (!isDriverFault(error)) return false;
      pool.close(0).catch(() => {});
      pool = open();
      return true;
    },
    end: (timeoutMs = 5_000) => pool.close(timeoutMs),
  };
}

interface PoolOptions extends ConnectOptions {
  settings: ConnectionSettings;
  deadlineMs: number;
}

function openPool(options: PoolOptions) {
  const { max = 10, waitingMax = Infinity, eachStatement, deadlineMs } = options;
  const { keepsSession } = options.settings;
  const { client, close } = openClient(options);
  // Without a session a statement must not be sent behind another: PgBouncer passes the
  // connection on between them.
  const isBounded = options.waitingMax !== undefined || !keepsSession;
  const slots = isBounded ? boundedSlots(max, waitingMax) : countedSlots(max);
  const timeoutMs = !keepsSession && eachStatement ? options.statementTimeoutMs : undefined;
  const inTransaction = <T>(build: Build<T>) =>
    client.begin(async (tx) => {
      await limitTo(tx, timeoutMs);
      return build(tx);
    }) as Promise<T>;
  const run = <T>(build: Build<T>) => {
    const made = async () => (timeoutMs ? inTransaction(build) : build(client));
    return withDeadline(slots.run(made, deadlineMs), deadlineMs, throwDeadline);
  };
  return {
    close,
    slots,
    /** Each has a slot and a deadline. */
    statements: queryable(client, (build) => new Statement(build, run)),
    /** For work that has both as a whole. */
    bare: queryable(client, (build) => build(client)),
    transaction: <T>(work: (tx: Tx) => Promise<T>, options: TransactionOptions) => {
      const level = options.snapshot ? 'isolation level repeatable read' : '';
      const limitMs = options.deadlineMs ?? timeoutMs;
      return client.begin(level, (sql) => workIn(sql, work, limitMs)) as Promise<Done<T>>;
    },
  };
}

interface Done<T> {
  result: T;
  /** For after the commit. */
  acts: (() => void)[];
}

/**
 * When one of several concurrent statements fails, the work of the others may go on. postgres.js
 * would run their next statement on the connection after the rollback, outside of any transaction.
 * So no statement is accepted after the end.
 */
async function workIn<T>(
  client: postgres.TransactionSql,
  work: (tx: Tx) => Promise<T>,
  limitMs: number | undefined,
): Promise<Done<T>> {
  const acts: (() => void)[] = [];
  let hasEnded = false;
  const statements = queryable(client, (build) => {
    if (hasEnded) throw new Error('a statement of a transaction that has ended');
    return build(client);
  });
  const afterCommit = (act: () => void) => void acts.push(act);
  const tx: Tx = Object.assign(statements, { transaction: true as const, afterCommit });
  try {
    // Pipelined with the first statement of the work.
    const [, result] = await Promise.all([limitTo(client, limitMs), work(tx)]);
    return { result, acts };
  } finally {
    hasEnded = true;
  }
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
  throw new DatabaseError('DEADLINE');
}

/** Until the end of the transaction. */
async function limitTo(sql: postgres.TransactionSql, ms: number | undefined): Promise<void> {
  if (ms) await sql`select set_config('statement_timeout', ${String(ms)}, true)`;
}

/**
 * Bounds the statements and transactions of a pool that run and that wait. The driver would queue
 * them behind each other on busy connections, also when another connection becomes free earlier.
 */
interface Slots {
  load(): { running: number; waiting: number };
  /**
   * Runs the work when a slot is free; its slot is taken until it ends, also beyond a deadline.
   * @throws DatabaseError `BUSY` when too many wait, `DEADLINE` when none was free within `ms`
   */
  run<T>(work: () => Promise<T>, ms: number): Promise<T>;
}

/** Counts only: the driver queues what has no connection. */
function countedSlots(connections: number): Slots {
  let count = 0;
  return {
    load: () => ({
      running: Math.min(count, connections),
      waiting: Math.max(0, count - connections),
    }),
    async run(work) {
      count++;
      try {
        return await work();
      } finally {
        count--;
      }
    },
  };
}

function boundedSlots(connections: number, waitingMax: number): Slots {
  let running = 0;
  const waiting: (() => void)[] = [];
  return {
    load: () => ({ running, waiting: waiting.length }),
    async run(work, ms) {
      const until = monotonicMs() + ms;
      if (running < connections) running++;
      else if (waiting.length >= waitingMax) throw new DatabaseError('BUSY');
      // The slot passes from the work that ends.
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        if (monotonicMs() >= until) throw new DatabaseError('DEADLINE');
        return await work();
      } finally {
        const next = waiting.shift();
        if (next) next();
        else running--;
      }
    },
  };
}

/** Makes a statement of the driver; it runs on that connection when it is awaited. */
type Build<T> = (client: postgres.ISql) => Promise<T>;

/** A statement that the pool runs, once; as a part of other SQL it is that of the driver. */
class Statement<T> {
  readonly build: Build<T>;
  readonly #run: (build: Build<T>) => Promise<T>;
  #result: Promise<T> | undefined;

  constructor(build: Build<T>, run: (build: Build<T>) => Promise<T>) {
    this.build = build;
    this.#run = run;
  }
  // biome-ignore lint/suspicious/noThenProperty: it runs when it is awaited
  then: Promise<T>['then'] = (...on) => this.#started().then(...on);
  catch: Promise<T>['catch'] = (...on) => this.#started().catch(...on);
  finally: Promise<T>['finally'] = (...on) => this.#started().finally(...on);

  #started(): Promise<T> {
    this.#result ??= this.#run(this.build);
    return this.#result;
  }
}

/** @param make the statement that `build` makes, or one that runs it in another way */
function queryable(
  client: postgres.ISql,
  make: <T>(build: Build<T>) => Promise<T> | Statement<T>,
): Queryable {
  const tag = (first: string | object, ...values: readonly unknown[]) => {
    if (!isTemplate(first)) return client(first as string, ...(values as never[]));
    return make((on) => {
      const parts = values.map((value) => (value instanceof Statement ? value.build(on) : value));
      return on(first, ...(parts as never[]));
    });
  };
  const unsafe = (text: string, values?: never[]) => make((on) => on.unsafe(text, values));
  let orm: Orm | undefined;
  return {
    sql: Object.assign(tag, { unsafe }) as Sql,
    get orm() {
      orm ??= drizzle(async (text, values, method) => {
        const rows = make((on) => {
          const query = on.unsafe(text, values);
          return method === 'all' ? query.values() : query;
        });
        return { rows: await rows };
      });
      return orm;
    },
  };
}

function isTemplate(first: string | object): first is TemplateStringsArray {
  return typeof first === 'object' && 'raw' in first;
}

/** A value as one jsonb parameter: a batch of rows for `jsonb_to_recordset`, or a document. */
export function asJson(value: unknown): never {
  return value as never;
}

function openClient({ settings, ...options }: PoolOptions) {
  const { hosts, user, password, database, keepsSession } = settings;
  const kept = {
    ...SESSION,
    statement_timeout: String(options.statementTimeoutMs ?? DEADLINE_MS),
    ...(options.role ? { role: options.role } : {}),
  };
  const session = {
    application_name: options.name ?? 'tallyhook',
    TimeZone: 'UTC',
    ...(keepsSession ? kept : {}),
    ...settings.session,
  };
  const first = hosts[0];
  const opening = new AbortController();
  const driver: object = {
    // The driver takes what is absent from the environment.
    ...(first ? { host: first.host, port: first.port } : {}),
    ...(user ? { user } : {}),
    ...(password ? { password } : {}),
    ...(database ? { database } : {}),
    ssl: false,
    keep_alive: settings.keepAliveS,
    connection: LONG_LOGIN,
    socket: (found: DriverOptions) => openSocket(settings, found, session, opening.signal),
  };
  const client = postgres({
    ...driver,
    max: options.max ?? 10,
    idle_timeout: 0,
    backoff: (retries: number) => Math.min(1, 0.05 * 2 ** Math.min(retries, 8)),
    onnotice: () => {},
    prepare: keepsSession,
    types: { ...VALUE_TYPES, ...ARRAY_TYPES } as never,
    // If true, each new connection queries array types first, and a failure of that query cannot
    // be handled.
    fetch_types: false,
    // Rows have the column's name in camel case; an alias is needed only where names differ.
    transform: { column: { from: postgres.toCamel } },
  });
  const close = async (timeoutMs: number) => {
    await client.end({ timeout: timeoutMs / 1000 });
    opening.abort();
  };
  return { client, close };
}

function isDriverFault(error: unknown): boolean {
  return (
    error instanceof TypeError &&
    /\bnextWrite\b[\s\S]*postgres\/(src|cjs\/src)\/connection\.js/.test(error.stack ?? '')
  );
}
