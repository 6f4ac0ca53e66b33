/**
 * `tallyhook keys`: manages API keys through the running daemon with a key of scope admin, and
 * without one directly in the database.
 */
import { type Instant, isoText } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { makeIds } from '../kernel/ids.ts';
import { jsonText, tryParseJson } from '../kernel/json.ts';
import { systemRandom } from '../kernel/random.ts';
import { printLine } from '../kernel/telemetry/log.ts';
import { type Keys, keyLimitsSchema, makeKeys } from '../keys/keys.ts';
import { createdKey, type KeyLimits, key, SCOPES, type Scope } from '../resources/admin/key.ts';
import type { Shown } from '../resources/resource.ts';
import { shower } from '../resources/show.ts';
import { callDaemon, hasKey, listAll, type Remote } from './api/remote.ts';
import { printRows } from './api/table.ts';
import { withDatabase } from './installation.ts';
import { instantOf } from './options.ts';

interface NewKey {
  owner: string;
  name: string;
  scopes: Scope[];
  limits: KeyLimits | undefined;
  expiresAt: Instant | undefined;
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
  const made = hasKey(options) ? await createRemote(options, input) : await create(input);
  const { id, owner, expires_at, key: secret } = made;
  const shown = { id, owner, name, scopes, limits: made.limits, expires_at, secret };
  if (options.json) printLine(jsonText(shown));
  else {
    const end = expires_at ? `, valid until ${expires_at}` : '';
    printLine(
      `${id} for ${owner} (${scopes.join(', ')})${end}\n${secret}\nThe secret is not shown again.`,
    );
  }
  return 0;
}

type Created = Shown<typeof createdKey>;

async function createRemote(remote: Remote, { expiresAt, ...input }: NewKey): Promise<Created> {
  const body = { ...input, expires_at: expiresAt === undefined ? undefined : isoText(expiresAt) };
  const text = await callDaemon(remote, { method: 'POST', path: '/api/keys', body });
  return JSON.parse(text) as Created;
}

async function create(input: NewKey): Promise<Created> {
  const { key, secret } = await withKeys((keys) => keys.create(input));
  return shower(createdKey)({ ...key, key: secret });
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

type Key = Shown<typeof key>;

export async function listKeys(options: Remote & { json?: true }): Promise<number> {
  const rows = hasKey(options)
    ? await listAll<Key>(options, '/api/keys')
    : (await withKeys((keys) => keys.list())).map(shower(key));
  printRows(rows, { json: options.json, none: 'There is no key', line: keyLine });
  return 0;
}

function keyLine(row: Key): string {
  const until = row.expires_at ? `valid until ${row.expires_at}` : 'valid';
  const end = row.revoked_at ? `revoked ${row.revoked_at}` : until;
  const limits = row.limits === null ? '' : `  ${jsonText(row.limits)}`;
  return `${row.id}  ${row.owner}  ${row.name}  ${row.scopes.join(',')}  ${end}${limits}`;
}

export async function revokeKey(id: string, options: Remote & { json?: true }): Promise<number> {
  if (hasKey(options)) await callDaemon(options, { method: 'DELETE', path: `/api/keys/${id}` });
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
