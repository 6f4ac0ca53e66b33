/** What the service really received and did, which the daemons never see. */
import { addressKey, sameAddress } from '../../../src/kernel/addresses.ts';
import { NFT_KINDS, type Operation } from '../../../src/operations/operations.ts';
import { settleTime } from '../../../src/sandbox/chain/chain.ts';
import type { Sandbox } from '../../../src/sandbox/sandbox.ts';
import { type Effect, tokenKey } from '../../../src/sandbox/state/records.ts';
import type { Received } from '../../../src/sandbox/state/request-log.ts';
import type { Simulation } from './run.ts';
import type { World } from './world.ts';

/** A transaction that another one replaced while the chain processed it counts as failed. */
export type ChainEnd = 'completed' | 'failed';

/** What the service did with a write on a token, and how the chain ended it. */
export type TokenEffect = Effect & { end: ChainEnd | undefined };

/** How the chain ended its transactions, by hash, as it draws that itself. */
function chainOf({ sandbox: { world } }: World): Map<string, ChainEnd> {
  const share = world.switches().fail_share;
  const ends = new Map<string, ChainEnd>();
  /** By token: the newest transaction, and when it ends. */
  const newest = new Map<string, { hash: string; until: number }>();
  let n = 0n;
  for (const { tx_hash: hash, contract_id, token_id, at } of world.effects.values()) {
    if (hash === null) continue;
    n += 1n;
    ends.set(hash, world.draw('fail', n) < share ? 'failed' : 'completed');
    const before = newest.get(`${contract_id}/${token_id}`);
    if (before && at < before.until) ends.set(before.hash, 'failed');
    newest.set(`${contract_id}/${token_id}`, { hash, until: at + settleTime(world, n) });
  }
  return ends;
}

/** As long as the service takes to apply a write: as a rule, and when a fault delays it. */
const APPLIED_MS = [5, 35_000];

/** The effects of the writes on tokens that the service received, by their names. */
export async function tokenEffectsOf(
  world: World,
  { received }: Simulation,
): Promise<Map<string, TokenEffect>> {
  const { db, sandbox } = world;
  const ends = chainOf(world);
  // Those that are known less get what the others leave.
  const writes = await db.sql<TokenWrite[]>`
    select reference as name, kind, tx_hash, token_id, to_addr, token_uri, meta_data
    from tallyhook.operations where kind = any(${[...NFT_KINDS]}::text[])
    order by tx_hash is null, token_id is null, recorded_at`;
  const left = [...sandbox.world.effects.values()].filter(({ tx_hash: hash }) => hash !== null);
  const found = new Map<string, TokenEffect>();
  for (const withinMs of APPLIED_MS)
    for (const write of writes) {
      const applied = received.get(write.name)?.find((one) => one.applied);
      if (!applied || found.has(write.name)) continue;
      const at = left.findIndex((effect) => isOf(write, { applied, withinMs }, effect, sandbox));
      const effect = left[at];
      if (!effect) continue;
      left.splice(at, 1);
      found.set(write.name, { ...effect, end: ends.get(effect.tx_hash ?? '') });
    }
  return found;
}

type TokenWrite = { name: string } & Pick<
  Operation,
  'kind' | 'txHash' | 'tokenId' | 'toAddr' | 'tokenUri' | 'metaData'
>;

function isOf(
  write: TokenWrite,
  { applied: { at }, withinMs }: { applied: Received; withinMs: number },
  effect: Effect,
  { world }: Sandbox,
): boolean {
  const { kind, txHash, tokenId, toAddr, tokenUri, metaData } = write;
  if (txHash !== null) return effect.tx_hash === txHash;
  const token = world.tokens.get(tokenKey(effect.contract_id ?? 0n, effect.token_id ?? 0n));
  // A token that was burned is not known any more.
  const isAlike = !token || (token.uri === tokenUri && token.metadata === metaData);
  return (
    effect.kind === kind &&
    (tokenId === null || effect.token_id === tokenId) &&
    (toAddr === null || sameAddress(effect.to_addr, toAddr)) &&
    (kind !== 'mint_sequential' || isAlike) &&
    effect.at >= at &&
    effect.at < at + withinMs
  );
}

/** Collects what the service received; its own log is bounded. */
export function harvest({ sandbox }: World, simulation: Simulation): void {
  const log = sandbox.control.requests(simulation.harvested, 100_000);
  for (const entry of log) {
    const name = /sim=(\w+)/.exec(entry.query)?.[1];
    if (name) simulation.received.set(name, [...(simulation.received.get(name) ?? []), entry]);
    const addr = /addr=(0x\w+)/.exec(entry.query)?.[1];
    if (entry.endpoint === 'oauth_token' && entry.fault !== null)
      simulation.incidents.untoken.push(entry.at);
    if (!addr || entry.method !== 'GET') continue;
    const answered = entry.status === 200 && entry.fault === null;
    if (!answered && entry.fault !== 'error') continue;
    const times = answered ? simulation.polls : simulation.refused;
    const key = addressKey(addr);
    times.set(key, [...(times.get(key) ?? []), entry.at]);
  }
  simulation.harvested = log.at(-1)?.n ?? simulation.harvested;
}
