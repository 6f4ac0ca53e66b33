/** `tallyhook keys`: manages API keys directly in the database. */
import { isoText } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { makeIds } from '../kernel/ids.ts';
import { jsonText, tryParseJson } from '../kernel/json.ts';
import { systemRandom } from '../kernel/random.ts';
import { printLine } from '../kernel/terminal.ts';
import {
  type KeyLimits,
  type Keys,
  keyLimitsSchema,
  makeKeys,
  SCOPES,
  type Scope,
} from '../keys/keys.ts';
import { withDatabase } from './installation.ts';

function withKeys<T>(work: (keys: Keys) => Promise<T>): Promise<T> {
  return withDatabase(({ db, clock }) =>
    work(makeKeys({ db, clock, random: systemRandom, ids: makeIds(clock, systemRandom) })),
  );
}

export async function createKey(options: {
  owner: string;
  name: string;
  scope: string[];
  /** JSON, as POST /api/keys takes it. */
  limits?: string;
  json?: true;
}): Promise<number> {
  const limits = options.limits === undefined ? undefined : parseLimits(options.limits);
  const wrong = options.scope.find((scope) => !SCOPES.some((known) => known === scope));
  if (wrong)
    throw new Failure('bad_setting', `${wrong} is not a scope; scopes are ${SCOPES.join(', ')}`);
  const scopes = SCOPES.filter((scope) => options.scope.includes(scope)) as Scope[];
  const { owner, name } = options;
  const { key, secret } = await withKeys((keys) => keys.create({ owner, name, scopes, limits }));
  const created = { id: key.id, owner, name, scopes, limits: key.limits, secret };
  if (options.json) printLine(jsonText(created));
  else
    printLine(
      `${key.id} for ${owner} (${scopes.join(', ')})\n${secret}\nThe secret is not shown again.`,
    );
  return 0;
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

export async function listKeys(options: { json?: true }): Promise<number> {
  const rows = await withKeys((keys) => keys.list());
  const shown = rows.map(({ createdAt, revokedAt, ...key }) => ({
    ...key,
    created_at: isoText(createdAt),
    revoked_at: revokedAt === null ? null : isoText(revokedAt),
  }));
  if (options.json) printLine(jsonText({ data: shown }));
  for (const key of options.json ? [] : shown) {
    const end = key.revoked_at ? `revoked ${key.revoked_at}` : 'valid';
    const limits = key.limits === null ? '' : `  ${jsonText(key.limits)}`;
    printLine(`${key.id}  ${key.owner}  ${key.name}  ${key.scopes.join(',')}  ${end}${limits}`);
  }
  return 0;
}

export async function revokeKey(id: string, options: { json?: true }): Promise<number> {
  await withKeys(async (keys) => {
    try {
      await keys.revoke(id);
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'not_found') throw error;
      throw new Failure('not_found', `key ${id} does not exist; see npx tallyhook keys list`);
    }
  });
  printLine(options.json ? jsonText({ id, revoked: true }) : `Revoked ${id}`);
  return 0;
}
