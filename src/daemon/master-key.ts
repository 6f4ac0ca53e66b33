/**
 * The master key and its canaries. For each key in use the database keeps a text encrypted with
 * it, so that a wrong or missing key refuses the start instead of failing at each webhook. While
 * MASTER_KEY replaces MASTER_KEY_OLD there are two, and a start needs both keys.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  findInstallationSetting,
  fixInstallationSetting,
  setInstallationSetting,
} from '../db/leases.ts';
import type { Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Random } from '../kernel/random.ts';
import { type Encryption, makeEncryption } from '../webhooks/webhooks.ts';
import { type Config, requireMasterKey } from './config/config.ts';
import type { Database } from './database.ts';

/** Canaries, separated by spaces; the one of MASTER_KEY last. */
const SETTING = 'master_key_canaries';
const CONTEXT = `installation.${SETTING}`;

/** 32 bytes each. */
export interface KeyPair {
  key: Uint8Array;
  former: Uint8Array | undefined;
}

export interface MasterKeys extends KeyPair {
  /** Under MASTER_KEY alone. */
  current: Encryption;
  /** Encrypts with MASTER_KEY and decrypts with both. */
  both: Encryption;
  /** Since when MASTER_KEY has a canary; undefined when it has none. */
  provedSince: Instant | undefined;
}

type Opened = Pick<Database, 'db' | 'clock'>;

/** The keys of a daemon. @throws Failure `bad_setting` for a wrong or missing key */
export async function openProvedKeys(
  database: Opened,
  config: Config,
  random: Random,
): Promise<MasterKeys> {
  const keys = await openMasterKeys(database, config, random);
  if (keys.provedSince === undefined) await addCanary(database, keys.current);
  return keys;
}

/** Changes nothing but to generate a key in DATA_DIR. @throws Failure `bad_setting` */
export async function openMasterKeys(
  { db }: Opened,
  config: Config,
  random: Random,
): Promise<MasterKeys> {
  const stored = await findInstallationSetting(db, SETTING);
  const canaries = stored?.value.split(' ') ?? [];
  const key = await loadMasterKey(config, random, canaries.length > 0);
  const former = config.masterKeyOld ? Buffer.from(config.masterKeyOld, 'base64') : undefined;
  const current = makeEncryption(key, random);
  const both = former ? makeEncryption(key, random, former) : current;
  if (!canaries.every((canary) => isReadable(both, canary)))
    throw new Failure('bad_setting', refusalOf(canaries, current));
  const isProved = canaries.some((canary) => isReadable(current, canary));
  return { key, former, current, both, provedSince: isProved ? stored?.setAt : undefined };
}

function refusalOf(canaries: readonly string[], current: Encryption): string {
  if (canaries.length > 1)
    return (
      'the rotation of MASTER_KEY is not finished; set MASTER_KEY to the new key and ' +
      'MASTER_KEY_OLD to the former one, and run npx tallyhook rotate-master-key'
    );
  const wrong = canaries.some((canary) => isReadable(current, canary)) ? '_OLD' : '';
  return (
    `MASTER_KEY${wrong} is not the key that encrypted the secrets of this database; set it to ` +
    'that key (to replace it, to the new key, and MASTER_KEY_OLD to that one), or if it is lost ' +
    'run npx tallyhook rotate-master-key --lost'
  );
}

function isReadable(encryption: Encryption, canary: string): boolean {
  try {
    encryption.decrypt(canary, CONTEXT);
    return true;
  } catch {
    return false;
  }
}

/** Adds the canary of MASTER_KEY; the secrets of a former key remain to be encrypted again. */
export async function addCanary({ db, clock }: Opened, current: Encryption): Promise<void> {
  const canary = current.encrypt('canary', CONTEXT);
  const stored = await fixInstallationSetting(db, SETTING, canary, clock.now());
  if (stored.split(' ').some((text) => isReadable(current, text))) return;
  await setInstallationSetting(db, SETTING, `${stored} ${canary}`, clock.now());
}

/** Once every secret is encrypted with MASTER_KEY: no other key is needed any more. */
export async function keepOnlyCanary({ db, clock }: Opened, current: Encryption): Promise<void> {
  const stored = await findInstallationSetting(db, SETTING);
  const canary = current.encrypt('canary', CONTEXT);
  // The daemons that were started with MASTER_KEY are those since the same instant as before.
  await setInstallationSetting(db, SETTING, canary, stored?.setAt ?? clock.now());
}

/** MASTER_KEY, or with the embedded database the key in DATA_DIR, generated for a new database. */
export async function loadMasterKey(
  config: Config,
  random: Random,
  isUsed: boolean,
): Promise<Uint8Array> {
  requireMasterKey(config);
  if (config.masterKey) return Buffer.from(config.masterKey, 'base64');
  const path = keyPath(config);
  if (!isUsed) {
    const generated = Buffer.from(random.bytes(32)).toString('base64');
    await writeFile(path, `${generated}\n`, { flag: 'wx', mode: 0o600 }).catch(() => {});
  }
  const text = await readFile(path, 'utf8').catch(() => {
    throw new Failure(
      'bad_setting',
      `${path} is missing, and the secrets of this database are encrypted with its key; restore ` +
        'it from a backup, or set MASTER_KEY',
    );
  });
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length !== 32) throw new Failure('bad_setting', `${path} must hold 32 bytes in base64`);
  return key;
}

/** With the embedded database, stores MASTER_KEY in place of the generated key. */
export async function replaceGeneratedKey(config: Config): Promise<void> {
  const path = keyPath(config);
  if (config.databaseUrl || !config.masterKey) return;
  await writeFile(`${path}.new`, `${config.masterKey}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

function keyPath(config: Config): string {
  return join(config.dataDir, 'master.key');
}
