/** `tallyhook keys`: API keys straight in the database, for when no key is at hand. */
import { systemChance } from '../kernel/chance.ts';
import { isoText } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { makeIds } from '../kernel/ids.ts';
import { jsonText } from '../kernel/json.ts';
import { printLine } from '../kernel/terminal.ts';
import { type Keys, makeKeys, SCOPES, type Scope } from '../keys/keys.ts';
import { withDatabase } from './installation.ts';

function withKeys<T>(work: (keys: Keys) => Promise<T>): Promise<T> {
  return withDatabase(({ db, clock }) =>
    work(makeKeys({ db, clock, chance: systemChance, ids: makeIds(clock, systemChance) })),
  );
}

export async function createKey(options: {
  owner: string;
  name: string;
  scope: string[];
  json?: true;
}): Promise<number> {
  const wrong = options.scope.find((scope) => !SCOPES.some((known) => known === scope));
  if (wrong)
    throw new Failure('bad_setting', `${wrong} is not a scope; there are ${SCOPES.join(', ')}`);
  const scopes = SCOPES.filter((scope) => options.scope.includes(scope)) as Scope[];
  const { owner, name } = options;
  const { key, secret } = await withKeys((keys) => keys.create({ owner, name, scopes }));
  if (options.json) printLine(jsonText({ id: key.id, owner, name, scopes, secret }));
  else
    printLine(
      `${key.id} for ${owner} (${scopes.join(', ')})\n${secret}\nThe secret is shown once.`,
    );
  return 0;
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
    printLine(`${key.id}  ${key.owner}  ${key.name}  ${key.scopes.join(',')}  ${end}`);
  }
  return 0;
}

export async function revokeKey(id: string, options: { json?: true }): Promise<number> {
  await withKeys(async (keys) => {
    try {
      await keys.revoke(id);
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'not_found') throw error;
      throw new Failure('not_found', `there is no key ${id}; see npx tallyhook keys list`);
    }
  });
  printLine(options.json ? jsonText({ id, revoked: true }) : `${id} is revoked`);
  return 0;
}
