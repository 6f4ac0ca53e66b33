/** The generated secrets of an installation: the master key and the first admin key. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Failure } from '../../kernel/errors.ts';
import type { Random } from '../../kernel/random.ts';
import { type Keys, SCOPES } from '../../keys/keys.ts';
import type { Config } from './config.ts';

/** MASTER_KEY, or with the embedded database a key generated in DATA_DIR. */
export async function loadMasterKey(config: Config, random: Random): Promise<Uint8Array> {
  if (config.masterKey) return Buffer.from(config.masterKey, 'base64');
  const path = join(config.dataDir, 'master.key');
  const generated = Buffer.from(random.bytes(32)).toString('base64');
  await writeFile(path, `${generated}\n`, { flag: 'wx', mode: 0o600 }).catch(() => {});
  const key = Buffer.from((await readFile(path, 'utf8')).trim(), 'base64');
  if (key.length !== 32) throw new Failure('bad_setting', `${path} must hold 32 bytes in base64`);
  return key;
}

/** Ensures that a key with every scope exists; returns it if it was generated now. */
export async function ensureAdminKey(keys: Keys, config: Config): Promise<string | undefined> {
  if (config.adminKey) {
    await keys.ensureAdmin(config.adminKey);
    return undefined;
  }
  if ((await keys.list()).length > 0) return undefined;
  const { secret } = await keys.create({ name: 'admin', owner: 'admin', scopes: SCOPES });
  return secret;
}
