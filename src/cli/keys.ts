/**
 * `tallyhook keys`: manages API keys through the running daemon with a key of scope admin, and
 * without one directly in the database.
 */
import { type Instant, isoText } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { makeIds } from '../kernel/ids.ts';
import { jsonText, tryParseJson } from '../kernel/json.ts';
import { printLine } from '../kernel/log.ts';
import { systemRandom } from '../kernel/random.ts';
import {
  type KeyLimits,
  type Keys,
  keyLimitsSchema,
  makeKeys,
  SCOPES,
  type Scope,
} from '../keys/keys.ts';
import { withDatabase } from './installation.ts';
import { instantOf } from './options.ts';
import { callDaemon, listAll, type Remote } from './remote.ts';

/** A key as the API shows it. */
interface ShownKey {
  id: string;
  name: string;
  owner: string;
  scopes: readonly string[];
  limits: unknown;
  created_at: string;
  revoked_at: string | null;
  expires_at: string | null;
  last_used_at: string | null;
}

interface NewKey {
  owner: string;
  name: string;
  scopes: Scope[];
  limits: KeyLimits | undefined;
  expiresAt: Instant | undefined;
}

/** Its owner has the first spelling of the name. */
interface MadeKey {
  id: string;
  owner: string;
  secret: string;
}

function withKeys<T>(work: (keys: Keys) => Promise<T>): Promise<T> {
  return withDatabase(({ db, clock }) =>
    work(makeKeys({ db, clock, random: systemRandom, ids: makeIds(clock, systemRandom) })),
  );
}

export async function createKey(
  options: Remote & {
    owner: string;
    name: string;
    scope: string[];
    /** JSON, as POST /api/keys takes it. */
    limits?: string;
    expires?: string;
    json?: true;
  },
): Promise<number> {
  const limits = options.limits === undefined ? undefined : parseLimits(options.limits);
  const wrong = options.scope.find((scope) => !SCOPES.some((known) => known === scope));
  if (wrong)
    throw new Failure('bad_setting', `${wrong} is not a scope; scopes are ${SCOPES.join(', ')}`);
  const scopes = SCOPES.filter((scope) => options.scope.includes(scope)) as Scope[];
  const { name } = options;
  const expiresAt = instantOf('--expires', options.expires);
  const input = { owner: options.owner, name, scopes, limits, expiresAt };
  const made = options.key ? await createRemote(options, input) : await create(input);
  const { id, owner, secret } = made;
  const until = expiresAt === undefined ? null : isoText(expiresAt);
  const shown = { id, owner, name, scopes, limits: limits ?? null, expires_at: until, secret };
  if (options.json) printLine(jsonText(shown));
  else {
    const end = until ? `, valid until ${until}` : '';
    printLine(
      `${id} for ${owner} (${scopes.join(', ')})${end}\n${secret}\nThe secret is not shown again.`,
    );
  }
  return 0;
}

async function createRemote(remote: Remote, { expiresAt, ...input }: NewKey): Promise<MadeKey> {
  const body = { ...input, ...(expiresAt === undefined ? {} : { expires_at: isoText(expiresAt) }) };
  const text = await callDaemon(remote, { method: 'POST', path: '/api/keys', body });
  const { id, owner, key } = JSON.parse(text) as { id: string; owner: string; key: string };
  return { id, owner, secret: key };
}

async function create(input: NewKey): Promise<MadeKey> {
  const { key, secret } = await withKeys((keys) => keys.create(input));
  return { id: key.id, owner: key.owner, secret };
}

/** @throws Failure `bad_setting` with an example */
function parseLimits(text: string): KeyLimits {
  const read = keyLimitsSchema.safeParse(tryParseJson(text));
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const where = issue?.path.join('.') || 'the value';
  const example =
    '{"kinds":["give"],"operators":["1"],"amount_per_call":"10","amount_per_day":"99"}';
  throw new Failure(
    'bad_setting',
    `--limits: ${where}: ${issue?.message}; for example '${example}'`,
  );
}

export async function listKeys(options: Remote & { json?: true }): Promise<number> {
  const rows = options.key ? await listAll<ShownKey>(options, '/api/keys') : await list();
  if (options.json) printLine(jsonText({ data: rows }));
  for (const key of options.json ? [] : rows) {
    const until = key.expires_at ? `valid until ${key.expires_at}` : 'valid';
    const end = key.revoked_at ? `revoked ${key.revoked_at}` : until;
    const limits = key.limits === null ? '' : `  ${jsonText(key.limits)}`;
    printLine(`${key.id}  ${key.owner}  ${key.name}  ${key.scopes.join(',')}  ${end}${limits}`);
  }
  return 0;
}

async function list(): Promise<ShownKey[]> {
  const text = (at: Instant | null) => (at === null ? null : isoText(at));
  const rows = await withKeys((keys) => keys.list());
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    owner: row.owner,
    scopes: row.scopes,
    limits: row.limits,
    created_at: isoText(row.createdAt),
    revoked_at: text(row.revokedAt),
    expires_at: text(row.expiresAt),
    last_used_at: text(row.lastUsedAt),
  }));
}

export async function revokeKey(id: string, options: Remote & { json?: true }): Promise<number> {
  if (options.key) await callDaemon(options, { method: 'DELETE', path: `/api/keys/${id}` });
  else await revoke(id);
  printLine(options.json ? jsonText({ id, revoked: true }) : `Revoked ${id}`);
  return 0;
}

async function revoke(id: string): Promise<void> {
  await withKeys(async (keys) => {
    try {
      await keys.revoke(id);
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'not_found') throw error;
      throw new Failure('not_found', `key ${id} does not exist; see npx tallyhook keys list`);
    }
  });
}
