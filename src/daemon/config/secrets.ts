/** The first admin key of an installation. */
import type { Keys } from '../../keys/keys.ts';
import { SCOPES } from '../../resources/key.ts';
import type { Config } from './config.ts';

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
