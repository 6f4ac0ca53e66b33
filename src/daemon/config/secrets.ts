/** The two secrets of an installation: the master key that seals, and the first admin key. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Failure } from '../../kernel/errors.ts';
import type { Random } from '../../kernel/random.ts';
import type { Keys } from '../../keys/keys.ts';
import { SCOPES } from '../../keys/keys.ts';
import type { Config } from './config.ts';

/** The master key: the environment's, or with the embedded database one generated beside it. */
export async function masterKeyOf(config: Config, random: Random): Promise<Uint8Array> {
  if (config.masterKey) return Buffer.from(config.masterKey, 'base64');
  const path = join(config.dataDir, 'master.key');
  const fresh = Buffer.from(random.bytes(32)).toString('base64');
  await writeFile(path, `${fresh}\n`, { flag: 'wx', mode: 0o600 }).catch(() => {});
  const key = Buffer.from((await readFile(path, 'utf8')).trim(), 'base64');
  if (key.length !== 32) throw new Failure('bad_setting', `${path} must hold 32 bytes in base64`);
  return key;
}

/**
 * Makes sure that somebody can get in. Answers the admin key when it was made now: it is shown
 * once.
 */
export async function ensureAdmin(keys: Keys, config: Config): Promise<string | undefined> {
  if (config.adminKey) {
    await keys.ensureAdmin(config.adminKey);
    return undefined;
  }
  if ((await keys.list()).length > 0) return undefined;
  const { secret } = await keys.create({ name: 'admin', owner: 'admin', scopes: SCOPES });
  return secret;
}
