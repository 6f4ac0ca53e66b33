/**
 * API keys: creation, authentication, scopes and limits. A key is 256 random bits, shown once and
 * stored as a hash. It names an owner, to whom idempotency keys and approvals belong.
 */
import type { Db, Orm, Queryable, Tx } from '../db/connect.ts';
import { and, asc, eq, getTableColumns, gt, isNull } from '../db/drizzle.ts';
import { findInstallationSetting, setInstallationSetting } from '../db/leases.ts';
import { isOwner, sameOwner } from '../kernel/addresses.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import { Failure, must } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import { sha256Hex } from '../kernel/json.ts';
import type { Random } from '../kernel/random.ts';
import {
  type KeyLimits,
  type key,
  SCOPES,
  type Scope,
  SECRET_PATTERN,
  SECRET_WORDS,
  seesOnlyOwn,
} from '../resources/admin/key.ts';
import type { Row } from '../resources/resource.ts';
import { makeAddressLimit } from './address-limit.ts';
import { recordDone } from './audit.ts';
import { keyLimitsSchema, limitsOf } from './limits.ts';
import { keys } from './tables.ts';

export { type AddressLimit, makeAddressLimit } from './address-limit.ts';
export { type Audit, type AuditEntry, makeAudit, pruneAudit } from './audit.ts';
export { checkLimits, dayLimitOf, keyLimitsSchema } from './limits.ts';
export {
  CSRF_HEADER,
  makeSessions,
  SESSION_COOKIE,
  type Session,
  type Sessions,
} from './sessions.ts';

type Key = Row<typeof key>;

/** An authenticated key. */
export interface Caller {
  keyId: string;
  owner: string;
  scopes: readonly Scope[];
  /** Absent: no limits. */
  limits?: KeyLimits | undefined;
  /** Absent or null: it does not expire. */
  expiresAt?: Instant | null;
}

export interface Keys {
  /**
   * The caller with this secret; undefined when the key is unknown, expired or revoked.
   * @param address of the client, which may try few secrets per second that were not valid lately
   * @throws Failure `too_many_requests`
   */
  authenticate(secret: string, address?: () => string | undefined): Promise<Caller | undefined>;
  /**
   * Creates a key. The secret is returned once and not stored. Its owner has the first spelling.
   * @throws Failure `invalid_request` for invalid limits, an expiry in the past, or an owner whose
   *   name is empty or has invisible characters
   */
  create(input: {
    name: string;
    owner: string;
    scopes: readonly Scope[];
    limits?: KeyLimits | undefined;
    expiresAt?: Instant | undefined;
  }): Promise<{ key: Key; secret: string }>;
  /**
   * Creates an admin key with this secret, the value of ADMIN_KEY, unless it exists. A key that a
   * former value made is revoked; one that existed before stays. A key that was revoked or has
   * expired stays so, and then nothing is changed.
   * @throws Failure `bad_setting` for a weak secret, and for a key without the scope `admin`
   */
  ensureAdmin(secret: string): Promise<'valid' | 'invalid'>;
  /** Oldest first, after the key with that id; at most a thousand by default. */
  list(page?: { after?: string; limit?: number }): Promise<Key[]>;
  /** @throws Failure `not_found` */
  revoke(id: string): Promise<void>;
}

const LISTED_MAX = 1_000;
/** Per second and address: secrets that were not valid lately. */
const UNKNOWN_PER_S = 50;
/** How exact `lastUsedAt` is. */
const USED_EVERY_MS = 60_000;

/** @param deps.monotonic measures the rate of unknown secrets */
export function makeKeys(deps: {
  db: Db;
  clock: Clock;
  random: Random;
  ids: Ids;
  monotonic?: Clock;
}): Keys {
  const { db, clock, random, ids, monotonic } = deps;
  const callers = makeCallerCache(async (hash) => {
    const key = await db.single((q) => findByHash(q.orm, hash));
    const now = clock.now();
    if (!key || !isValid(key, now)) return undefined;
    // The next use tries again.
    if ((key.lastUsedAt ?? 0) <= now - USED_EVERY_MS)
      await db
        .single((q) => q.orm.update(keys).set({ lastUsedAt: now }).where(eq(keys.id, key.id)))
        .catch(() => {});
    return callerOf(key);
  }, clock);
  const unknown = makeAddressLimit(UNKNOWN_PER_S, monotonic);

  return {
    async authenticate(secret, address) {
      if (isSecret(secret)) return callers.get(sha256Hex(secret), () => unknown.take(address?.()));
      await unknown.take(address?.());
      return undefined;
    },
    async create({ name, owner, scopes, limits, expiresAt }) {
      if (expiresAt !== undefined && expiresAt <= clock.now())
        throw new Failure('invalid_request', 'expires_at must be in the future');
      const secret = newSecret(random);
      const key = {
        id: ids.next('key'),
        name,
        owner: await knownOwner(db, owner),
        scopes: [...scopes],
        limits: limits === undefined ? null : validLimits(limits),
        createdAt: clock.now(),
        expiresAt: expiresAt ?? null,
      };
      await insertKey(db.orm, { ...key, hash: sha256Hex(secret) });
      return { key: { ...key, revokedAt: null, lastUsedAt: null }, secret };
    },
    async ensureAdmin(secret) {
      if (!isSecret(secret)) {
        throw new Failure('bad_setting', `ADMIN_KEY must be ${SECRET_WORDS}`);
      }
      const fresh = { id: ids.next('key'), createdAt: clock.now(), hash: sha256Hex(secret) };
      const state = await db.begin((tx) => ensureAdminKey(tx, fresh));
      // After the commit, so that no lookup from before it stays cached.
      callers.clear();
      return state;
    },
    list: async ({ after = '', limit = LISTED_MAX } = {}) =>
      db.orm
        .select(COLUMNS)
        .from(keys)
        .where(gt(keys.id, after))
        .orderBy(asc(keys.id))
        .limit(limit),
    async revoke(id) {
      // A key that is revoked already keeps its time.
      await db.orm
        .update(keys)
        .set({ revokedAt: clock.now() })
        .where(and(eq(keys.id, id), isNull(keys.revokedAt)));
      const rows = await db.orm.select({ id: keys.id }).from(keys).where(eq(keys.id, id)).limit(1);
      // After the update, so that no lookup from before it stays cached.
      callers.clear();
      if (rows.length === 0) throw new Failure('not_found');
    },
  };
}

const { hash: _, ...COLUMNS } = getTableColumns(keys);

async function findByHash(orm: Orm, hash: string): Promise<Key | undefined> {
  const rows = await orm.select(COLUMNS).from(keys).where(eq(keys.hash, hash)).limit(1);
  return rows[0];
}

/** The id of the key that ADMIN_KEY made last. */
const ADMIN_SETTING = 'admin_key';
/** Name and owner of a key that a start makes. */
const ADMIN = 'admin';

async function ensureAdminKey(
  tx: Tx,
  fresh: { id: string; createdAt: Instant; hash: string },
): Promise<'valid' | 'invalid'> {
  // Daemons that start at the same time must not revoke the keys of each other.
  await tx.sql`select pg_advisory_xact_lock(hashtext('tallyhook.admin_key'))`;
  const existing = await findByHash(tx.orm, fresh.hash);
  // A restart must not fail because a key has ended meanwhile.
  if (existing && !isValid(existing, fresh.createdAt)) return 'invalid';
  if (existing) requireAdmin(existing);
  const { id } = existing ?? fresh;
  const former = await findInstallationSetting(tx, ADMIN_SETTING);
  if (!existing)
    await insertKey(tx.orm, {
      ...fresh,
      name: ADMIN,
      owner: await knownOwner(tx, ADMIN),
      scopes: [...SCOPES],
      limits: null,
      expiresAt: null,
    });
  // Release 0.2.0 did not store which key it made.
  const isMade = !existing || (!former && isAdmins(existing));
  if (isMade) await setInstallationSetting(tx, ADMIN_SETTING, id, fresh.createdAt);
  if (former === undefined || former.value === id) return 'valid';
  const revoked = await tx.orm
    .update(keys)
    .set({ revokedAt: fresh.createdAt })
    .where(and(eq(keys.id, former.value), isNull(keys.revokedAt)))
    .returning({ id: keys.id, owner: keys.owner });
  for (const { id: formerId, owner } of revoked) {
    const detail = { id: formerId, reason: 'ADMIN_KEY has another value' };
    const action = 'DELETE /api/keys/{id}';
    await recordDone(tx, { owner, keyId: id, action, detail }, fresh.createdAt);
  }
  return 'valid';
}

/**
 * Refuses an ADMIN_KEY that would leave no one with the scope `admin`.
 * @throws Failure `bad_setting`
 */
function requireAdmin({ id, scopes }: Key): void {
  if (scopes.includes('admin')) return;
  throw new Failure(
    'bad_setting',
    `ADMIN_KEY is the secret of ${id}, which lacks the scope admin; set that of a key with it, ` +
      `or a new one: ${SECRET_WORDS}`,
  );
}

/** Whether a key is as a start makes it. */
function isAdmins({ name, owner }: Key): boolean {
  return name === ADMIN && sameOwner(owner, ADMIN);
}

function isValid({ revokedAt, expiresAt }: Key, now: Instant): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt > now);
}

/** Does nothing when the hash exists. */
async function insertKey(orm: Orm, key: typeof keys.$inferInsert): Promise<void> {
  await orm.insert(keys).values(key).onConflictDoNothing({ target: keys.hash });
}

/** The owner by the first spelling, which this one is if there was none. */
async function knownOwner({ sql }: Queryable, owner: string): Promise<string> {
  if (!isOwner(owner))
    throw new Failure('invalid_request', 'owner: must be a name without invisible characters');
  await sql`insert into tallyhook.owners (name) values (${owner}) on conflict do nothing`;
  const rows = await sql<{ name: string }[]>`
    select name from tallyhook.owners
    where tallyhook.owner_key(name) = tallyhook.owner_key(${owner})`;
  return must(rows[0], 'owner').name;
}

function callerOf(key: Key): Caller {
  const { id: keyId, owner, scopes, limits, expiresAt } = key;
  return { keyId, owner, scopes, limits: limitsOf(limits), expiresAt };
}

function validLimits(limits: KeyLimits): KeyLimits {
  const parsed = keyLimitsSchema.safeParse(limits);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Failure('invalid_request', `limits.${issue?.path.join('.')}: ${issue?.message}`);
}

/** A new secret: `thk_` and 256 random bits. */
export function newSecret(random: Random): string {
  return `thk_${Buffer.from(random.bytes(32)).toString('base64url')}`;
}

/** True for a text in the format of a secret. Other texts are not looked up. */
export function isSecret(text: string): boolean {
  return SECRET_PATTERN.test(text);
}

/** @throws Failure `forbidden` when the caller has none of the scopes, and not `admin` */
export function requireScope(caller: Caller, ...scopes: readonly [Scope, ...Scope[]]): void {
  if ([...scopes, 'admin' as const].some((scope) => caller.scopes.includes(scope))) return;
  const named = scopes.filter((scope) => scope !== 'portal').join(' or ');
  throw new Failure('forbidden', `the key needs the scope ${named || 'portal'}`);
}

/** The owner of a caller that may see only what is its own; undefined for any other. */
export function onlyOwnOf({ owner, scopes }: Caller): string | undefined {
  return seesOnlyOwn(scopes) ? owner : undefined;
}

const CACHED_MS = 1_000;
const CACHED_MAX = 1_000;

/** One-second cache of key lookups. Concurrent lookups of one hash share a query. */
interface CallerCache {
  /**
   * @param onUnknown awaited before the lookup of a hash without an entry, not even an expired one
   * @throws what the lookup and `onUnknown` throw
   */
  get(hash: string, onUnknown: () => Promise<void>): Promise<Caller | undefined>;
  /** Drops all entries; the results of running lookups are not cached. */
  clear(): void;
}

function makeCallerCache(
  lookUp: (hash: string) => Promise<Caller | undefined>,
  clock: Clock,
): CallerCache {
  let entries = new Map<string, { caller: Caller; until: Instant }>();
  let pending = new Map<string, Promise<Caller | undefined>>();

  async function load(hash: string, before?: () => Promise<void>): Promise<Caller | undefined> {
    // After a clear these maps are no longer in use.
    const [ownEntries, ownPending] = [entries, pending];
    try {
      await before?.();
      const until = clock.now() + CACHED_MS;
      const caller = await lookUp(hash);
      ownEntries.delete(hash);
      if (caller === undefined) return undefined;
      if (ownEntries.size >= CACHED_MAX) ownEntries.clear();
      ownEntries.set(hash, { caller, until });
      return caller;
    } finally {
      ownPending.delete(hash);
    }
  }
  return {
    async get(hash, onUnknown) {
      const entry = entries.get(hash);
      if (entry && entry.until > clock.now()) return entry.caller;
      const running = pending.get(hash);
      if (running) return running;
      const lookup = load(hash, entry ? undefined : onUnknown);
      pending.set(hash, lookup);
      return lookup;
    },
    clear() {
      entries = new Map();
      pending = new Map();
    },
  };
}
