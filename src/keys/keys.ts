/**
 * API keys: creation, authentication, scopes and limits. A key is 256 random bits, shown once and
 * stored as a hash. It names an owner, to whom idempotency keys and approvals belong.
 */
import type { Db } from '../db/connect.ts';
import { isOwner } from '../kernel/addresses.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import { sha256Hex } from '../kernel/json.ts';
import type { Random } from '../kernel/random.ts';
import { makeAddressLimit } from './address-limit.ts';
import { makeCache } from './cache.ts';
import { type KeyLimits, keyLimitsSchema, limitsOf } from './limits.ts';
import * as store from './store.ts';

export { type AddressLimit, makeAddressLimit } from './address-limit.ts';
export { type Audit, type AuditEntry, makeAudit, pruneAudit } from './audit.ts';
export {
  checkLimits,
  dayLimitOf,
  type KeyLimits,
  keyLimitsSchema,
  type LimitedWrite,
} from './limits.ts';

export const SCOPES = ['gateway', 'read', 'manage', 'decide', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

/** An authenticated key. */
export interface Caller {
  keyId: string;
  owner: string;
  scopes: readonly Scope[];
  /** Absent: no limits. */
  limits?: KeyLimits;
}

export interface Keys {
  /**
   * The caller with this secret; undefined when the key is unknown, expired or revoked.
   * @param address of the client, which may try few secrets per second that were not valid lately
   * @throws Failure `too_many_requests`
   */
  authenticate(secret: string, address?: string | undefined): Promise<Caller | undefined>;
  /**
   * Creates a key. The secret is returned once and not stored. Its owner has the first spelling.
   * @throws Failure `invalid_request` for invalid limits, an expiry in the past, or an owner whose
   *   name is empty or has characters that nobody sees
   */
  create(input: {
    name: string;
    owner: string;
    scopes: readonly Scope[];
    limits?: KeyLimits | undefined;
    expiresAt?: Instant | undefined;
  }): Promise<{ key: store.Key; secret: string }>;
  /** Creates an admin key with this secret, unless it exists; for ADMIN_KEY. */
  ensureAdmin(secret: string): Promise<void>;
  /** Oldest first, after the key with that id; at most a thousand by default. */
  list(page?: { after?: string; limit?: number }): Promise<store.Key[]>;
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
  const callers = makeCache(async (hash) => {
    const key = await db.single((q) => store.findByHash(q.orm, hash));
    const now = clock.now();
    if (!key || key.revokedAt !== null || (key.expiresAt ?? now + 1) <= now) return undefined;
    // The next use tries again.
    if ((key.lastUsedAt ?? 0) <= now - USED_EVERY_MS)
      await db.single((q) => store.markUsed(q.orm, key.id, now)).catch(() => {});
    return callerOf(key);
  }, clock);
  const unknown = makeAddressLimit(UNKNOWN_PER_S, monotonic);

  return {
    async authenticate(secret, address) {
      if (isSecret(secret)) return callers.get(sha256Hex(secret), () => unknown.take(address));
      await unknown.take(address);
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
      await store.insertKey(db.orm, { ...key, hash: sha256Hex(secret) });
      return { key: { ...key, revokedAt: null, lastUsedAt: null }, secret };
    },
    async ensureAdmin(secret) {
      if (!isSecret(secret)) {
        throw new Failure(
          'bad_setting',
          'ADMIN_KEY must be thk_ followed by 32 to 200 letters, digits, - or _',
        );
      }
      const hash = sha256Hex(secret);
      if (await store.findByHash(db.orm, hash)) return;
      await store.insertKey(db.orm, {
        id: ids.next('key'),
        name: 'admin',
        owner: await knownOwner(db, 'admin'),
        scopes: [...SCOPES],
        limits: null,
        createdAt: clock.now(),
        expiresAt: null,
        hash,
      });
    },
    list: ({ after = '', limit = LISTED_MAX } = {}) => store.listKeys(db.orm, { after, limit }),
    async revoke(id) {
      const known = await store.revokeKey(db.orm, id, clock.now());
      // After the update, so that no lookup from before it stays cached.
      callers.clear();
      if (!known) throw new Failure('not_found');
    },
  };
}

/** The owner by the first spelling. */
async function knownOwner(db: Db, owner: string): Promise<string> {
  if (isOwner(owner)) return store.spellingOf(db, owner);
  throw new Failure('invalid_request', 'owner: must be a name without invisible characters');
}

function callerOf(key: store.Key): Caller {
  const { id: keyId, owner } = key;
  const limits = limitsOf(key.limits);
  return { keyId, owner, scopes: key.scopes as Scope[], ...(limits ? { limits } : {}) };
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
  return /^thk_[A-Za-z0-9_-]{32,200}$/.test(text);
}

/** @throws Failure `forbidden` when the caller has neither the scope nor `admin` */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.includes(scope) && !caller.scopes.includes('admin')) {
    throw new Failure('forbidden', `the key needs the scope ${scope}`);
  }
}
