/** Holds the end of a simulated story against what the service really did. */
import { findOperation, listTransitions, type Operation } from '../../src/journal/journal.ts';
import { addressKey } from '../../src/kernel/addresses.ts';
import { balancesOf, effectOn } from '../../src/ledger/ledger.ts';
import { findWallet, listOpenDrifts } from '../../src/reconciler/wallet-store.ts';
import type { Asked, Outside } from './simulation.ts';
import type { World } from './world.ts';

export interface Figures {
  writes: number;
  /** Writes whose answer was lost. */
  unknown: number;
  executed: number;
  notExecuted: number;
  undecided: number;
  /** Lost answers that are still waiting at the end. */
  open: number;
  outside: number;
  drifts: number;
  looks: number;
  /** Every contradiction between the end of the story and the truth, in words. */
  wrong: string[];
}

/** What became of the story. */
export async function verdictOn(
  world: World,
  { asked, outside }: { asked: readonly Asked[]; outside: readonly Outside[] },
): Promise<Figures> {
  const { db } = world;
  const figures: Figures = {
    ...{ writes: asked.length, unknown: 0, executed: 0, notExecuted: 0, undecided: 0, open: 0 },
    ...{ outside: outside.length, drifts: 0, looks: 0, wrong: [] },
  };
  const operations: [Asked, Operation][] = [];
  for (const entry of asked) {
    const operation = await findOperation(db, entry.id);
    if (operation) operations.push([entry, operation]);
    else figures.wrong.push(`${entry.name}: not recorded`);
  }
  for (const [entry, operation] of operations) {
    const history = await listTransitions(db, operation.id);
    count(
      figures,
      operation,
      history.some(({ to_state }) => to_state === 'unknown'),
    );
    figures.wrong.push(...contradictions(world, entry, operation));
  }
  for (const addr of await walletsIn(world)) {
    figures.wrong.push(...(await walletWrongs(world, addr, operations, outside)));
    figures.drifts += (await listOpenDrifts(db, addressKey(addr))).length;
  }
  figures.looks = world.sandbox.control
    .requests(0, 100_000)
    .filter(({ method }) => method === 'GET').length;
  return figures;
}

function count(figures: Figures, { state, outcome }: Operation, wasUnknown: boolean): void {
  if (!wasUnknown) return;
  figures.unknown++;
  if (state === 'undecided') figures.undecided++;
  else if (outcome === 'open') figures.open++;
  else if (outcome === 'executed' || state === 'failed') figures.executed++;
  else figures.notExecuted++;
}

/** What we say of a write against what the service did. */
function contradictions({ sandbox }: World, entry: Asked, operation: Operation): string[] {
  const { state } = operation;
  const { tokenId, contractId } = entry.fields;
  const applied = [...sandbox.world.effects.values()].filter((effect) =>
    tokenId == null
      ? effect.reason_type === entry.name
      : effect.kind === entry.kind && effect.token_id === tokenId,
  ).length;
  const said = `${entry.name}: ${entry.kind} is ${state}, applied ${applied} times`;
  if (applied > 1) return [said];
  if (['accepted', 'executed', 'settled', 'failed'].includes(state) && applied === 0) return [said];
  if (['rejected', 'not_executed'].includes(state) && applied === 1) return [said];
  if (entry.kind !== 'mint' || (state !== 'settled' && state !== 'failed')) return [];
  const token = sandbox.world.tokens.get(`${contractId}/${tokenId}`);
  // A mint stands unless it failed; the token may have been burned since.
  const failed = token !== undefined && !token.exists;
  return failed === (state === 'failed') ? [] : [`${said}, token ${token?.status}`];
}

async function walletsIn({ db, users, books }: World): Promise<string[]> {
  const all = [...new Set([...users, ...books.operators.values()])];
  const known = await Promise.all(all.map((addr) => findWallet(db, addressKey(addr))));
  return all.filter((_, i) => known[i]?.opened_at != null);
}

/** Every difference has a name, and no change made elsewhere lacks one. */
async function walletWrongs(
  { db, sandbox, books }: World,
  addr: string,
  operations: readonly [Asked, Operation][],
  outside: readonly Outside[],
): Promise<string[]> {
  const key = addressKey(addr);
  const wallet = await findWallet(db, key);
  const truth = sandbox.world.wallets.get(key)?.balance ?? 0n;
  const account = `wallet:${addr}`;
  const ledger = (await balancesOf(db, [account])).get(account)?.balance ?? 0n;
  const open = await listOpenDrifts(db, key);
  const drift = open.reduce((sum, { amount }) => sum + amount, 0n);
  const effects = operations
    .filter(([, { outcome }]) => outcome === 'open')
    .map(([, operation]) => effectOn(operation, account, books))
    .filter((effect) => effect !== 0n);
  const sums = new Set([0n]);
  for (const effect of effects) for (const sum of [...sums]) sums.add(sum + effect);
  const wrong: string[] = [];
  if (wallet?.observed_balance !== truth)
    wrong.push(`${addr}: seen ${wallet?.observed_balance}, holds ${truth}`);
  if (!sums.has(truth - ledger - drift))
    wrong.push(`${addr}: holds ${truth}, books ${ledger}, drifts ${drift}, open ${effects}`);
  // A multiple of 100,000 is what others did; the rest may be writes that people have to decide.
  const changed = outside
    .filter((change) => change.addr === addr && change.amount !== 0n)
    .reduce((sum, { amount }) => sum + amount, 0n);
  const opening = await openingOf({ db, account });
  const named = ledger + drift - opening;
  const posted = operations
    .filter(([, { inBooks }]) => inBooks)
    .reduce((sum, [, operation]) => sum + effectOn(operation, account, books), 0n);
  const unexplained = named - posted - (changed - outsideIn(opening));
  if (effects.length === 0 && unexplained !== 0n)
    wrong.push(`${addr}: others changed ${changed}, drifts ${drift}, opening ${opening}`);
  return wrong;
}

/** What others had changed before the wallet was opened is part of its opening. */
function outsideIn(opening: bigint): bigint {
  const round = 100_000n;
  // An operator's own fortune is a multiple of it as well, and nobody changes that.
  if (opening > 10n ** 15n) return 0n;
  const rest = ((opening % round) + round) % round;
  return opening - rest;
}

async function openingOf({ db, account }: { db: World['db']; account: string }): Promise<bigint> {
  const rows = await db.sql<{ amount: bigint }[]>`
    select amount from tallyhook.wanted_postings
    where kind = 'opening' and lower(account) = ${account.toLowerCase()}`;
  return rows[0]?.amount ?? 0n;
}
