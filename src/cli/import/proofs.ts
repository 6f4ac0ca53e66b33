/** The balance proof of all wallets that a file touches, with what the daemon knows of them. */
import { pause } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { accountKey, accountOfWallet } from '../../operations/operations.ts';
import type { openings, transaction } from '../../resources/ledger/ledger.ts';
import type { Shown } from '../../resources/resource.ts';
import { callDaemon, pagesOf, type Remote } from '../api/remote.ts';
import type { Movement, Movements } from './movements.ts';
import {
  type FailedProof,
  type Known,
  type Proof,
  proveWallet,
  type WalletProofs,
} from './proof.ts';
import { clearProgress, showProgress } from './tally.ts';

const BATCH = 100;
const LISTED_MAX = 1_000;
const WAITS_MAX = 1_200;
const WAIT_MS = 500;

type Openings = Shown<typeof openings>;

export async function proveAll(remote: Remote, movements: Movements): Promise<WalletProofs> {
  const wallets = { touched: 0, proved: 0, unobserved: 0, failed: 0 };
  const failed: FailedProof[] = [];
  await postedReports(remote);
  for (const batch of batchesOf(movements)) {
    const { data } = await openingsOf(
      remote,
      batch.map(({ addr }) => addr),
    );
    for (const [n, { addr, movements: own }] of batch.entries()) {
      const proof = proveWallet(await knownOf(remote, data[n]), own);
      wallets.touched++;
      if (proof.verdict === 'proved' || proof.verdict === 'unobserved') wallets[proof.verdict]++;
      else {
        wallets.failed++;
        if (failed.length < LISTED_MAX) failed.push({ addr, ...output(proof) });
      }
    }
    showProgress(`${wallets.touched} of ${movements.size()} wallets proved …`);
  }
  clearProgress();
  return { wallets, failed };
}

function output(proof: Exclude<Proof, { verdict: 'proved' | 'unobserved' }>) {
  return Object.fromEntries(
    Object.entries(proof).map(([name, value]) => [
      name,
      name === 'at' ? new Date(Number(value)).toISOString() : nameless(value),
    ]),
  );
}

function nameless(value: string | number | bigint): string | number {
  return typeof value === 'bigint' ? value.toString() : value;
}

/** Waits until reports of an import that was killed are posted: they count as earlier entries. */
async function postedReports(remote: Remote): Promise<void> {
  for (let n = 0; n < WAITS_MAX; n++) {
    const { posting } = await openingsOf(remote, [NO_WALLET]);
    if (!posting) return;
    if (n === 0) process.stderr.write('waiting until the ledger has posted earlier reports …\n');
    await pause(WAIT_MS);
  }
  throw new Failure(
    'bad_setting',
    'the ledger does not post earlier reports; see tallyhook doctor',
  );
}

const NO_WALLET = `0x${'0'.repeat(40)}`;

async function openingsOf(remote: Remote, addrs: readonly string[]) {
  const query = addrs.map((addr) => `addr=${encodeURIComponent(addr)}`).join('&');
  const text = await callDaemon(remote, { method: 'GET', path: `/api/openings?${query}` });
  return JSON.parse(text) as Openings;
}

async function knownOf(
  remote: Remote,
  found: Openings['data'][number] | undefined,
): Promise<Known> {
  const at = (text: string | null | undefined) => (text ? Date.parse(text) : null);
  const openedAt = at(found?.opened_at);
  const knownSince = at(found?.known_since);
  const isMoved = openedAt !== null && knownSince !== null && knownSince < openedAt;
  return {
    openedAt,
    opening: found?.opening ? BigInt(found.opening) : null,
    observedAt: at(found?.observed_at),
    drift: BigInt(found?.drift ?? 0),
    earlier: found && isMoved ? await earlierEntries(remote, found.addr, openedAt) : [],
  };
}

/** The entries before the observation of the opening, the opening itself apart. */
async function earlierEntries(remote: Remote, addr: string, before: number): Promise<Movement[]> {
  const found: Movement[] = [];
  const account = accountOfWallet(addr);
  const path = `/api/ledger/transactions?account=${encodeURIComponent(account)}`;
  for await (const page of pagesOf<Shown<typeof transaction>>(remote, path))
    for (const { kind, effective_at, entries } of page) {
      const at = Date.parse(effective_at);
      if (kind === 'opening' || at >= before) continue;
      for (const entry of entries)
        if (accountKey(entry.account) === accountKey(account))
          found.push({ at, amount: BigInt(entry.amount) });
    }
  return found;
}

function* batchesOf(movements: Movements) {
  let batch: { addr: string; movements: Movement[] }[] = [];
  for (const wallet of movements.wallets()) {
    batch.push(wallet);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
