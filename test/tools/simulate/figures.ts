/** Compares the end of a simulation with what the service really did. */

import { createHash } from 'node:crypto';
import { addressKey } from '../../../src/kernel/addresses.ts';
import { jsonText } from '../../../src/kernel/json.ts';
import { subsetsWithSum } from '../../../src/kernel/subset-sums.ts';
import {
  effectOn,
  findOperation,
  listTransitions,
  type Operation,
} from '../../../src/operations/operations.ts';
import { listOpenDrifts } from '../../../src/reconciler/drifts/drift.ts';
import { findWallet } from '../../../src/reconciler/wallets/wallet.ts';
import { tokenKey } from '../../../src/sandbox/state/records.ts';
import { balancesOf } from '../../harness/books.ts';
import { wrongsOfProbes, wrongsOfVanished } from './incidents.ts';
import type { Outside } from './outside.ts';
import type { Simulation } from './run.ts';
import { type ChainEnd, tokenEffectsOf } from './truth.ts';
import type { World } from './world.ts';
import type { RequestedWrite } from './writes.ts';

export interface Figures {
  requested: number;
  /** Writes that were recorded; the others were refused before. */
  recorded: number;
  /** Writes that became unknown. */
  unknown: number;
  executed: number;
  notExecuted: number;
  /** Unknown writes that the service answered late. */
  answeredLate: number;
  undecided: number;
  /** Writes that are still unknown at the end. */
  open: number;
  ambiguous: number;
  outside: number;
  drifts: number;
  /** By kind of write: unknown and undecided ones. */
  byKind: Record<string, { unknown: number; undecided: number }>;
  /** Names of undecided writes by reason. */
  reasons: Record<string, string[]>;
  /** Resolutions that contradict the truth, in words. */
  wrong: string[];
  /** Balances that the books do not explain, in words. */
  books: string[];
  /** Digests of what was asked for, of what the service applied of it, and of how we ended it. */
  digests: { requested: string; applied: string; ended: string };
}

/** A write as it was asked for, as it ended, and what the service did with it. */
interface Case {
  entry: RequestedWrite;
  operation: Operation;
  history: Awaited<ReturnType<typeof listTransitions>>;
  applied: number;
  /** How the chain ended it; undefined if it has nothing to do with it. */
  end: ChainEnd | undefined;
}

export async function figuresOf(world: World, simulation: Simulation): Promise<Figures> {
  const figures: Figures = {
    requested: simulation.requested.length,
    recorded: 0,
    unknown: 0,
    executed: 0,
    notExecuted: 0,
    answeredLate: 0,
    undecided: 0,
    open: 0,
    ambiguous: 0,
    drifts: 0,
    outside: simulation.outside.length,
    byKind: {},
    reasons: {},
    wrong: [],
    books: [],
    digests: { requested: '', applied: '', ended: '' },
  };
  const cases = await casesOf(world, simulation);
  figures.digests = digestsOf(simulation, cases);
  const madeBy = new Map<string, string>();
  for (const one of cases) {
    count(figures, one);
    figures.wrong.push(...contradictions(one), ...doubleClaim(one, madeBy));
  }
  figures.wrong.push(...(await incidentWrongs(world, simulation, cases)));
  const open = cases.filter(({ operation }) => operation.outcome === 'open');
  for (const addr of await walletsIn(world)) {
    figures.books.push(...(await walletWrongs(world, addr, open, simulation.outside)));
    figures.drifts += (await listOpenDrifts(world.db, [addressKey(addr)])).length;
  }
  return figures;
}

/** Findings that no single write shows. */
async function incidentWrongs(
  world: World,
  simulation: Simulation,
  cases: readonly Case[],
): Promise<string[]> {
  const late = cases.flatMap(({ entry, operation: { sendDeadlineAt } }) =>
    (simulation.received.get(entry.name) ?? []).flatMap(({ at }) =>
      at > (sendDeadlineAt ?? at)
        ? [`${entry.name} was sent ${at - (sendDeadlineAt ?? at)} ms late`]
        : [],
    ),
  );
  return [
    ...late,
    ...simulation.incidents.doubled,
    ...(await wrongsOfProbes(world, simulation)),
    ...(await wrongsOfVanished(world, simulation)),
    ...(await livingCalledBurned(world)),
  ];
}

/** Tokens that exist, nothing ever burned, and an event says are gone. */
async function livingCalledBurned({ db, sandbox }: World): Promise<string[]> {
  const rows = await db.sql<{ subject: string }[]>`
    select distinct subject from tallyhook.events where type = 'token.burned'`;
  const burned = new Set(
    [...sandbox.world.effects.values()]
      .filter(({ kind }) => kind === 'burn')
      .map((effect) => tokenKey(effect.contract_id ?? 0n, effect.token_id ?? 0n)),
  );
  return rows.flatMap(({ subject }) => {
    const key = subject.replace(/^token:/, '').replace(':', '/');
    const lives = sandbox.world.tokens.get(key)?.exists && !burned.has(key);
    return lives ? [`${subject} lives and is called burned`] : [];
  });
}

/** Short digests by which two runs of a seed are compared. */
function digestsOf({ requested }: Simulation, cases: readonly Case[]): Figures['digests'] {
  const digest = (rows: readonly unknown[]) =>
    createHash('sha256')
      .update(jsonText(rows.map(String)))
      .digest('hex')
      .slice(0, 12);
  const text = ({ name, kind, fields }: RequestedWrite) => jsonText({ name, kind, ...fields });
  return {
    requested: digest(requested.map(text)),
    applied: digest(cases.map(({ entry, applied }) => `${entry.name} ${applied}`)),
    ended: digest(cases.map(({ entry, operation }) => `${entry.name} ${operation.state}`)),
  };
}

async function casesOf(world: World, simulation: Simulation): Promise<Case[]> {
  const { db } = world;
  const { requested, received } = simulation;
  const effects = await tokenEffectsOf(world, simulation);
  const rows = await db.sql<{ id: string; reference: string }[]>`
    select id, reference from tallyhook.operations`;
  const ids = new Map(rows.map(({ id, reference }) => [reference, id]));
  const cases: Case[] = [];
  for (const entry of requested) {
    const id = ids.get(entry.name);
    const operation = id && (await findOperation(db, id));
    if (!operation) continue;
    const history = await listTransitions(db, operation.id);
    const applied = (received.get(entry.name) ?? []).filter((one) => one.applied);
    const end = effects.get(entry.name)?.end;
    cases.push({ entry, operation, history, applied: applied.length, end });
  }
  return cases;
}

function count(figures: Figures, { entry, operation, history }: Case): void {
  const { state, outcome } = operation;
  figures.recorded++;
  if (operation.ambiguous) figures.ambiguous++;
  if (!history.some(({ toState: to }) => to === 'unknown')) return;
  const kind = figures.byKind[entry.kind] ?? { unknown: 0, undecided: 0 };
  figures.byKind[entry.kind] = kind;
  figures.unknown++;
  kind.unknown++;
  const left = history.find(({ toState: to }) => to === 'undecided');
  if (left) {
    figures.undecided++;
    kind.undecided++;
    const reason = `${entry.kind}: ${reasonOf(left.evidence)}`;
    figures.reasons[reason] = [...(figures.reasons[reason] ?? []), entry.name];
  } else if (outcome === 'open') figures.open++;
  else if (history.some(({ toState: to }) => to === 'accepted' || to === 'rejected'))
    figures.answeredLate++;
  else if (outcome === 'executed' || state === 'failed') figures.executed++;
  else figures.notExecuted++;
}

function reasonOf(evidence: unknown): string {
  const { explanations, indicated, basis } = (evidence ?? {}) as Record<string, unknown>;
  return String(explanations ?? (indicated ? `${basis}, ${indicated}` : 'no reason'));
}

/** What we say of a write against what the service did. */
function contradictions({ entry, operation, history, applied, end }: Case): string[] {
  const { state } = operation;
  const path = history.map(({ toState, cause }) => `${toState} (${cause})`).join(', ');
  const write = `${entry.name} ${operation.id}: ${path}: ${entry.kind}`;
  const finding = `${write} is ${state}, applied ${applied} times`;
  if (applied > 1) return [finding];
  if (['accepted', 'executed', 'settled', 'failed'].includes(state) && applied === 0)
    return [finding];
  if (state === 'rejected' && applied === 1) return [finding];
  // A write that the chain did not complete had no effect, so both states are true.
  if (state === 'not_executed' && applied === 1 && end !== 'failed') return [finding];
  if (state === 'settled' && end === 'failed') return [`${finding}, but the chain failed it`];
  if (state === 'failed' && end === 'completed') return [`${finding}, but the chain completed it`];
  return [];
}

/** Every token has one maker, and every hash one write. */
function doubleClaim({ entry, operation }: Case, madeBy: Map<string, string>): string[] {
  const { kind, tokenId, txHash, outcome } = operation;
  const claims = txHash === null ? [] : [txHash];
  if (kind === 'mint_sequential' && tokenId !== null && outcome === 'executed')
    claims.push(`token ${tokenId}`);
  return claims.flatMap((claim) => {
    const other = madeBy.get(claim);
    madeBy.set(claim, `${entry.name} ${kind} ${operation.state}`);
    return other === undefined ? [] : [`${claim} is of ${other} and ${madeBy.get(claim)}`];
  });
}

async function walletsIn({ db, users, singles, books }: World): Promise<string[]> {
  const all = [...new Set([...users, ...singles, ...books.operators.values()])];
  const known = await Promise.all(all.map((addr) => findWallet(db, addressKey(addr))));
  return all.filter((_, i) => known[i]?.openedAt != null);
}

/** Every difference has a name. */
async function walletWrongs(
  { db, sandbox, books }: World,
  addr: string,
  cases: readonly Case[],
  outside: readonly Outside[],
): Promise<string[]> {
  const key = addressKey(addr);
  const wallet = await findWallet(db, key);
  const truth = sandbox.world.wallets.get(key)?.balance ?? 0n;
  const account = `wallet:${addr}`;
  const ledger = (await balancesOf(db, [account])).get(account)?.balance ?? 0n;
  const drifts = await listOpenDrifts(db, [key]);
  const drift = drifts.reduce((sum, { min }) => sum + min, 0n);
  const open = cases
    .map(({ operation }) => effectOn(operation, account, books))
    .filter((effect) => effect !== 0n);
  const wrong: string[] = [];
  if (wallet?.observedBalance !== truth)
    wrong.push(`${addr}: seen ${wallet?.observedBalance}, holds ${truth}`);
  if (open.length > 12) return wrong;
  const explained = subsetsWithSum(
    open.map((effect) => [effect]),
    [truth - ledger - drift],
    1,
  );
  const changed = outside.filter((change) => change.addr === addr).map(({ amount }) => amount);
  if (explained.length === 0)
    wrong.push(
      `${addr}: holds ${truth}, books ${ledger}, drifts ${drifts.map((d) => d.amount)}, ` +
        `open ${open}, others ${changed}`,
    );
  return wrong;
}
