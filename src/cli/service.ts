/**
 * `tallyhook service move`: lets the database belong to another address or client of its service.
 * One owner proposes and another approves; both times the wallets and tokens that the service of
 * the environment shows must be those of the ledger.
 */
import { type Database, identityTools, SERVICE_SETTING } from '../daemon/daemon.ts';
import type { Tx } from '../db/connect.ts';
import { findInstallationSetting, listLiving, setInstallationSetting } from '../db/leases.ts';
import { sameOwner } from '../kernel/addresses.ts';
import { Failure } from '../kernel/errors.ts';
import { makeIds } from '../kernel/ids.ts';
import { jsonText } from '../kernel/json.ts';
import { systemRandom } from '../kernel/random.ts';
import { printLine } from '../kernel/telemetry/log.ts';
import { type Caller, makeAudit, makeKeys, requireScope } from '../keys/keys.ts';
import { type GivenKey, keyOf } from './api/remote.ts';
import {
  type Comparison,
  compareWithService,
  comparisonLines,
  comparisonRows,
} from './doctor/comparison.ts';
import { withUpstream } from './doctor/doctor.ts';
import { withDatabase } from './installation.ts';

interface Options extends GivenKey {
  dryRun?: true;
  reason?: string;
  approve?: true;
  limit: number;
  json?: true;
}

interface Move {
  from: string;
  to: string;
}

interface Proposal extends Move {
  owner: string;
  reason: string;
}

/** The stored setting of a move that waits for its approval. */
const PROPOSED = 'service_move';

/** Exits 1 when the services differ. */
export async function runMove(options: Options): Promise<number> {
  const { dryRun, approve, limit } = options;
  const reason = options.reason?.trim();
  if ([dryRun, approve, reason].filter(Boolean).length !== 1)
    throw new Failure('bad_setting', 'give one of --dry-run, --reason and --approve');
  return await withDatabase(async (database, config) => {
    if (!config.service)
      throw new Failure('bad_setting', 'set UPSTREAM_BASE_URL to the new address of the service');
    const caller = dryRun ? undefined : await authenticated(database, await keyOf(options));
    return await withUpstream(
      database,
      config,
      async (upstream, to) => {
        const move = { from: await presentService(database, to), to };
        const comparison = await compareWithService(database.db, upstream, limit);
        const differs = differenceOf(comparison);
        if (!options.json) for (const line of linesOf(move, comparison)) printLine(line);
        if (caller && differs) throw new Failure('conflict', differs);
        const done = caller && (await decide(database, move, caller, reason));
        if (options.json)
          printLine(
            jsonText({
              ...move,
              same: !differs,
              done: done ?? null,
              ...comparisonRows(comparison),
            }),
          );
        else printLine(done ?? differs ?? 'The same ledger, as far as it was compared');
        return differs ? 1 : 0;
      },
      true,
    );
  });
}

/** @throws Failure `unauthorized`, `forbidden` */
async function authenticated({ db, clock }: Database, key: string): Promise<Caller> {
  const ids = makeIds(clock, systemRandom);
  const caller = await makeKeys({ db, clock, random: systemRandom, ids }).authenticate(key);
  if (!caller) throw new Failure('unauthorized', 'the API key is unknown, expired or revoked');
  requireScope(caller, 'decide');
  return caller;
}

/** @throws Failure `conflict` when there is nothing to move */
async function presentService({ db }: Database, to: string): Promise<string> {
  const present = (await findInstallationSetting(db, SERVICE_SETTING))?.value;
  if (present === undefined)
    throw new Failure('conflict', 'the database belongs to no service yet; start a daemon');
  if (present === to) throw new Failure('conflict', `the database already belongs to ${to}`);
  return present;
}

/** Why this may be another ledger, in one line. */
function differenceOf({ wallets, tokens }: Comparison): string | undefined {
  // What is a drift already is a difference of both addresses.
  const moved = wallets.different.filter(
    ({ expected, shown, drift }) => shown - expected !== drift,
  );
  const unreadable = wallets.unreadable + tokens.unreadable;
  if (moved.length === 0 && tokens.different.length === 0 && unreadable === 0)
    return wallets.compared + tokens.compared > 0
      ? undefined
      : 'there is no wallet or token to compare, so that nothing shows that it is the same ledger';
  return (
    `it may be another ledger: ${moved.length} wallets and ${tokens.different.length} tokens ` +
    `differ, ${unreadable} cannot be read; wait until open writes have settled, and compare again`
  );
}

function linesOf({ from, to }: Move, comparison: Comparison): string[] {
  return [`From ${from}`, `To   ${to}`, ...comparisonLines(comparison)];
}

/** @param reason of a proposal; without one it approves */
async function decide(
  database: Database,
  move: Move,
  caller: Caller,
  reason: string | undefined,
): Promise<string> {
  const { db, clock } = database;
  const audit = makeAudit({ db, clock });
  const { owner, keyId } = caller;
  const detail = { ...move, reason: reason ?? null };
  const action = `service move ${reason ? '--reason' : '--approve'}`;
  const entry = await audit.begin({ owner, keyId, clientAddress: null, action, detail });
  try {
    const done = reason
      ? await propose(database, { ...move, owner, reason })
      : await db.begin((tx) => approve(tx, database, move, owner));
    await audit.end(entry, 'done');
    return done;
  } catch (error) {
    await audit.end(entry, error instanceof Failure ? error.code : 'failed');
    throw error;
  }
}

async function propose({ db, clock }: Database, proposal: Proposal): Promise<string> {
  await setInstallationSetting(db, PROPOSED, jsonText(proposal), clock.now());
  return 'Proposed. Another owner approves: npx tallyhook service move --approve';
}

/**
 * A daemon whose heartbeat has expired, and one that starts, prove the database before they send:
 * they wait for this transaction, and then find that the database belongs to another service.
 * @throws Failure `conflict`, `same_owner`
 */
async function approve(
  tx: Tx,
  { clock }: Pick<Database, 'clock'>,
  { from, to }: Move,
  owner: string,
): Promise<string> {
  const stored = await findInstallationSetting(tx, PROPOSED);
  const proposal = stored && (JSON.parse(stored.value) as Proposal);
  if (!proposal || proposal.from !== from || proposal.to !== to)
    throw new Failure('conflict', `no one proposed to move to ${to}; propose with --reason`);
  if (sameOwner(proposal.owner, owner))
    throw new Failure('same_owner', `${owner} proposed it; a key of another owner approves`);
  const now = clock.now();
  await (await identityTools()).holdProofs(tx, now);
  const living = (await listLiving(tx, now)).length;
  if (living > 0)
    throw new Failure('conflict', `${living} daemons work with ${from}; stop them before`);
  await setInstallationSetting(tx, SERVICE_SETTING, to, now);
  return `The database belongs to ${to}. Start the daemons with its address`;
}
