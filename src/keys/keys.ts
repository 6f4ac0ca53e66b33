/**
 * Who may call. A key is 256 random bits, shown once and kept as a hash; it names an owner, because
 * idempotency and the rule of two people belong to people and not to secrets.
 */
import type { Db } from '../db/connect.ts';
import type { Clock } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import { sha256Hex } from '../kernel/json.ts';
import type { Random } from '../kernel/random.ts';
import { makeBelief } from './cache.ts';
import { type KeyLimits, keyLimitsSchema, limitsOf } from './limits.ts';
import * as store from './store.ts';

export {
  dayLimitOf,
  insistOnLimits,
  type KeyLimits,
  keyLimitsSchema,
  LIMITED_KINDS,
  type LimitedWrite,
} from './limits.ts';

export const SCOPES = ['gateway', 'read', 'manage', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

/** Who is calling, as far as the rest of the house needs to know. */
export interface Caller {
  keyId: string;
  owner: string;
  scopes: readonly Scope[];
  /** What its writes may do at most; absent: anything. */
  limits?: KeyLimits;
}

export interface Keys {
  /** The caller behind a secret, or undefined when it is unknown or revoked. */
  authenticate(secret: string): Promise<Caller | undefined>;
  /**
   * Makes a key; the secret is in the answer and nowhere else.
   * @throws Failure `invalid_request` for limits that are none
   */
  create(given: {
    name: string;
    owner: string;
    scopes: readonly Scope[];
    limits?: KeyLimits | undefined;
    createdBy?: string;
  }): Promise<{ key: store.Key; secret: string }>;
  /** Makes sure that this very secret is an admin key; for ADMIN_KEY. */
  ensureAdmin(secret: string): Promise<void>;
  list(): Promise<store.Key[]>;
  /** @throws Failure `not_found` */
  revoke(id: string): Promise<void>;
}

/** The keys of one database. */
export function makeKeys(given: { db: Db; clock: Clock; random: Random; ids: Ids }): Keys {
  const { db, clock, random, ids } = given;
  const believed = makeBelief(async (hash) => {
    const key = await db.single((q) => store.findByHash(q.orm, hash));
    return key && key.revokedAt === null ? callerOf(key) : undefined;
  }, clock);

  return {
    authenticate: async (secret) => (isSecret(secret) ? believed.of(sha256Hex(secret)) : undefined),
    async create({ name, owner, scopes, limits }) {
      const secret = newSecret(random);
      const key = {
        id: ids.next('key'),
        name,
        owner,
        scopes: [...scopes],
        limits: limits === undefined ? null : validLimits(limits),
        createdAt: clock.now(),
      };
      await store.insertKey(db.orm, { ...key, hash: sha256Hex(secret) });
      return { key: { ...key, revokedAt: null }, secret };
    },
    async ensureAdmin(secret) {
      if (!isSecret(secret)) {
        throw new Failure(
          'bad_setting',
          'ADMIN_KEY must be thk_ and at least 32 letters, digits, - or _',
        );
      }
      const hash = sha256Hex(secret);
      if (await store.findByHash(db.orm, hash)) return;
      const scopes = [...SCOPES];
      const key = {
        id: ids.next('key'),
        name: 'admin',
        owner: 'admin',
        scopes,
        limits: null,
        createdAt: clock.now(),
      };
      await store.insertKey(db.orm, { ...key, hash });
    },
    list: () => store.listKeys(db.orm),
    async revoke(id) {
      const known = await store.revokeKey(db.orm, id, clock.now());
      // After it stands: what is believed from now on was read behind it.
      believed.clear();
      if (!known) throw new Failure('not_found');
    },
  };
}

function callerOf(key: store.Key): Caller {
  const { id: keyId, owner } = key;
  const limits = limitsOf(key.limits);
  return { keyId, owner, scopes: key.scopes as Scope[], ...(limits ? { limits } : {}) };
}

function validLimits(given: KeyLimits): KeyLimits {
  const read = keyLimitsSchema.safeParse(given);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new Failure('invalid_request', `limits.${issue?.path.join('.')}: ${issue?.message}`);
}

/** A new secret: `thk_` and 256 random bits. */
export function newSecret(random: Random): string {
  return `thk_${Buffer.from(random.bytes(32)).toString('base64url')}`;
}

/** True for a text of the shape of our secrets; nothing else is ever hashed or looked up. */
export function isSecret(text: string): boolean {
  return /^thk_[A-Za-z0-9_-]{32,200}$/.test(text);
}

/** @throws Failure `forbidden` when the caller lacks the scope; `admin` has them all. */
export function insistOnScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.includes(scope) && !caller.scopes.includes('admin')) {
    throw new Failure('forbidden', `the key needs the scope ${scope}`);
  }
}
