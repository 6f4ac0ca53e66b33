/**
 * `tallyhook rotate-master-key`: encrypts every secret again with MASTER_KEY. It works in steps,
 * each a commit, and may be killed and repeated.
 */
import {
  type Config,
  type Database,
  type MasterKeys,
  masterKeyTools,
} from '../../daemon/daemon.ts';
import { countOlderDaemons } from '../../db/leases.ts';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { systemRandom } from '../../kernel/random.ts';
import { printLine } from '../../kernel/telemetry/log.ts';
import { deleteUnreadable, makeEncryption, reencryptEndpoints } from '../../webhooks/webhooks.ts';
import { withDatabase } from '../installation.ts';

interface Options {
  dryRun?: true;
  lost?: true;
  json?: true;
}

interface Counts {
  endpoints: number;
  reencrypted: number;
  deleted: number;
}

export async function runRotateMasterKey(options: Options): Promise<number> {
  const counts = await withDatabase((database, config) => rotate(database, config, options));
  if (options.json) printLine(jsonText({ dry_run: options.dryRun === true, ...counts }));
  else printLine(resultOf(counts, options));
  return 0;
}

function resultOf({ endpoints, reencrypted, deleted }: Counts, { dryRun }: Options): string {
  const would = dryRun ? 'would be ' : '';
  const lost = deleted > 0 ? `; ${deleted} with lost secrets ${would}deleted` : '';
  const done = dryRun ? '' : '. MASTER_KEY_OLD is not needed any more';
  const encrypted = `The secrets of ${reencrypted} of ${endpoints} endpoints`;
  return `${encrypted} ${would}encrypted again${lost}${done}`;
}

async function rotate(database: Database, config: Config, options: Options): Promise<Counts> {
  const { dryRun = false, lost = false } = options;
  const { addCanary, keepOnlyCanary, replaceGeneratedKey } = await masterKeyTools();
  const keys = lost ? await lostKeys(database, config) : await bothKeys(database, config);
  await refuseOlderDaemons(database, keys);
  if (!dryRun && !lost) await addCanary(database, keys.current);
  const counts = { endpoints: 0, reencrypted: 0, deleted: 0 };
  const unreadable: string[] = [];
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page = await reencryptEndpoints(database.db, keys, after, dryRun);
    counts.endpoints += page.changed.length + page.unchanged.length + page.unreadable.length;
    counts.reencrypted += page.changed.length;
    unreadable.push(...page.unreadable);
    after = page.next;
  }
  if (unreadable.length > 0 && !lost) throw unreadableFailure(unreadable);
  counts.deleted = unreadable.length;
  if (dryRun) return counts;
  for (const id of unreadable) await deleteUnreadable(database.db, id, database.clock.now());
  // The file first: with MASTER_KEY_OLD set the start accepts either.
  await replaceGeneratedKey(config);
  await keepOnlyCanary(database, keys.current);
  return counts;
}

/** @throws Failure `bad_setting` unless both keys are set and proved */
async function bothKeys(database: Database, config: Config): Promise<MasterKeys> {
  if (config.masterKey && config.masterKeyOld)
    return (await masterKeyTools()).openMasterKeys(database, config, systemRandom);
  throw new Failure(
    'bad_setting',
    'set MASTER_KEY to the new key (openssl rand -base64 32) and MASTER_KEY_OLD to the present one',
  );
}

/** @throws Failure `bad_setting` when the key is not lost */
async function lostKeys(database: Database, config: Config): Promise<MasterKeys> {
  const { loadMasterKey, openMasterKeys } = await masterKeyTools();
  const known = await openMasterKeys(database, config, systemRandom).catch(() => undefined);
  if (known) throw new Failure('bad_setting', 'the master key is not lost: it reads the canary');
  const key = await loadMasterKey(config, systemRandom, false);
  const current = makeEncryption(key, systemRandom);
  return { key, former: undefined, current, both: current, provedSince: undefined };
}

/** A daemon that does not know the new key could not read what is encrypted with it. */
async function refuseOlderDaemons(
  { db, clock }: Database,
  { provedSince }: MasterKeys,
): Promise<void> {
  const now = clock.now();
  const older = await countOlderDaemons(db, provedSince ?? now, now);
  if (older === 0) return;
  throw new Failure(
    'bad_setting',
    `${older} daemon(s) run without the new key; stop them, or restart them with MASTER_KEY and ` +
      'MASTER_KEY_OLD, and repeat this (a killed one counts until its heartbeat expires)',
  );
}

function unreadableFailure(ids: readonly string[]): Failure {
  const some = ids.slice(0, 5).join(', ');
  return new Failure(
    'bad_setting',
    `neither key decrypts the secrets of ${ids.length} endpoint(s): ${some}; delete them and ` +
      'repeat this',
  );
}
