/**
 * The journal of one token, and what a batch does to tokens. Pure.
 *
 * Movements of writes and the holders that observations showed are walked in the order of time; a
 * write also shows who held the token before it. What is shown and does not follow from the
 * movements before it was made elsewhere. So the journal holds at each observation what was seen,
 * in every order in which writes become known, and a write that explains a movement made elsewhere
 * replaces it.
 */
import { sameAddress, sameTxHash } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import { type Kind, type Operation, Unpostable } from '../../operations/operations.ts';
import type { MOVE_KINDS } from '../../resources/ledger/token.ts';
import { effectiveTimeOf } from '../posting.ts';
import type { nftMovements, observedHolders } from '../tables.ts';

type MoveKind = (typeof MOVE_KINDS)[number];

type Recorded = typeof nftMovements.$inferSelect;
type Shared =
  | ('fromAddr' | 'toAddr' | 'txHash' | 'operationId' | 'posting')
  | ('notBefore' | 'effectiveAt' | 'effectiveBasis');

/** A standing movement. Without an operation it is an opening, or was made elsewhere. */
export interface Movement extends Pick<Recorded, Shared> {
  /** Null until it is recorded. */
  id: bigint | null;
  kind: MoveKind;
}

/** A movement to be recorded. */
export type NewMovement = Pick<Recorded, Shared | 'kind' | 'reverses'>;

/** The owner is null where it is not known. */
type Holder = { owner: string | null } | 'none';

/** Who held the token at an instant, by an observation or by a write. */
export interface Shown {
  holder: Holder;
  /** Whether it was known before that the token did not exist. */
  isNew: boolean;
  txHash: string | null;
  notBefore: Instant | null;
  effectiveAt: Instant;
  effectiveBasis: string;
  /** The movement that it made. */
  made?: Movement;
}

/** What a batch adds to the journal of a token. */
export interface TokenChange {
  /** Writes to post. */
  posted: { movement: Movement; sentAt: Instant | null }[];
  /** Writes to take back; what was observed of one stays, as made elsewhere. */
  takenBack: { operationId: string; posting: number; isObserved: boolean }[];
  shown: Shown[];
}

/**
 * The movements to record.
 * @param journal the standing movements of the token, ordered by time
 */
export function planToken(
  journal: readonly Movement[],
  { posted, takenBack, shown }: TokenChange,
): NewMovement[] {
  const reversals = takenBack.map(({ operationId, posting, isObserved }) => {
    const found = journal.find((movement) => movement.operationId === operationId);
    const original = must(found, 'movement that is taken back');
    return { original, isObserved, row: reversalOf(original, { operationId, posting }) };
  });
  const originals = new Set(reversals.map(({ original }) => original));
  const seen = reversals.filter(({ isObserved }) => isObserved);
  let standing = replay(
    journal.filter((movement) => !originals.has(movement)),
    seen.flatMap(({ original }) => shownBy(original)),
  );
  for (const write of posted) {
    const movement = { ...write.movement, effectiveAt: placeOf(write, standing) };
    standing = replay([...standing, movement]);
  }
  standing = replay(standing, shown);
  const kept = new Set(standing);
  const replaced = journal.filter((one) => !kept.has(one) && !originals.has(one));
  return [
    ...reversals.map(({ row }) => row),
    ...replaced.map((movement) => reversalOf(movement, { operationId: null, posting: null })),
    ...standing.flatMap(({ id, ...row }) => (id === null ? [{ ...row, reverses: null }] : [])),
  ];
}

/**
 * The journal with what was made elsewhere as it follows from these facts; a movement made
 * elsewhere counts as the observation that showed it. Facts of one time are in the order given.
 */
function replay(movements: readonly Movement[], shown: readonly Shown[] = []): Movement[] {
  const known = movements.flatMap((one): (Movement | Shown)[] =>
    one.operationId === null ? shownBy(one) : [one],
  );
  const facts = [...known, ...shown].toSorted((a, b) => a.effectiveAt - b.effectiveAt);
  const journal: Movement[] = [];
  let holder: Holder | undefined;
  let lastAt = Number.NEGATIVE_INFINITY;
  const show = (fact: Shown) => {
    const move = moveTo(fact, holder);
    if (move) journal.push(fact.made && isSame(fact.made, move) ? fact.made : move);
    else completeOwner(journal, fact, holder);
    holder = heldAfter(fact, holder);
  };
  for (const fact of facts) {
    if ('holder' in fact) show(fact);
    else {
      show({ ...shownBefore(fact), effectiveAt: Math.max(fact.effectiveAt - 1, lastAt) });
      journal.push(fact);
      const [after] = shownBy(fact);
      if (after) holder = after.holder;
    }
    lastAt = fact.effectiveAt;
  }
  return journal;
}

/** The movement that leads from a holder to the one that was shown; undefined without one. */
function moveTo(shown: Shown, before: Holder | undefined): Movement | undefined {
  const { holder, isNew, txHash, notBefore, effectiveAt, effectiveBasis } = shown;
  const fromAddr = before === undefined || before === 'none' ? null : before.owner;
  const rest = { id: null, operationId: null, posting: null, notBefore, effectiveAt };
  const made = { ...rest, effectiveBasis, txHash, fromAddr };
  const exists = before !== undefined && before !== 'none';
  if (holder === 'none') return exists ? { ...made, kind: 'burn', toAddr: null } : undefined;
  const toAddr = holder.owner;
  if (!exists) return { ...made, kind: before === 'none' || isNew ? 'mint' : 'opening', toAddr };
  const isSameOwner = toAddr === null || fromAddr === null || sameAddress(fromAddr, toAddr);
  return isSameOwner ? undefined : { ...made, kind: 'transfer', toAddr };
}

/** A write may show that a token exists, but not whose it is: an observation completes that. */
function completeOwner(journal: Movement[], { holder }: Shown, before: Holder | undefined): void {
  const isUnknown = before !== undefined && before !== 'none' && before.owner === null;
  if (!isUnknown || holder === 'none' || holder.owner === null) return;
  const index = journal.findLastIndex(
    ({ toAddr, kind, operationId }) => toAddr === null && isStart(kind) && operationId === null,
  );
  const start = journal[index];
  if (start) journal[index] = { ...start, id: null, toAddr: holder.owner };
}

function isStart(kind: MoveKind): boolean {
  return kind === 'opening' || kind === 'mint';
}

function heldAfter({ holder }: Shown, before: Holder | undefined): Holder {
  if (holder === 'none' || holder.owner !== null) return holder;
  return before === undefined || before === 'none' ? holder : before;
}

/** What a movement shows of the holder after it; a change of data shows nothing. */
function shownBy(movement: Movement): Shown[] {
  const { kind, toAddr, txHash, notBefore, effectiveAt, effectiveBasis } = movement;
  if (kind === 'data_change') return [];
  const holder: Holder = kind === 'burn' ? 'none' : { owner: toAddr };
  const isNew = kind === 'mint';
  const shown = { holder, isNew, txHash, notBefore, effectiveAt, effectiveBasis };
  return [movement.operationId === null ? { ...shown, made: movement } : shown];
}

/** What a write shows of the holder before it: a mint that there was none. */
function shownBefore({ kind, fromAddr, effectiveAt }: Movement): Shown {
  const holder: Holder = kind === 'mint' ? 'none' : { owner: fromAddr };
  const rest = { isNew: false, txHash: null, notBefore: null, effectiveBasis: 'operation' };
  return { ...rest, holder, effectiveAt };
}

/**
 * When a write took effect. Where a movement made elsewhere is the same as the write, the write
 * takes its place: what was reported of its time, or inferred, may be wrong. It is the same by the
 * hash, or else the first one at or after the time of the write, or the last one before it that the
 * write may have made: not sent later, or when it was not sent by us, what the token still shows.
 */
function placeOf(
  { movement, sentAt }: TokenChange['posted'][number],
  standing: readonly Movement[],
): Instant {
  const { kind, effectiveAt: at, txHash } = movement;
  const like = standing.filter((one) => one.operationId === null && isLike(one, movement));
  const ends = kind === 'mint' ? ['burn'] : ['opening', 'mint', 'transfer', 'burn'];
  const before = standing.findLast((one) => one.effectiveAt < at && ends.includes(one.kind));
  // What a later write shows stands a millisecond before that.
  const since = (sentAt ?? before?.effectiveAt ?? 0) - 1;
  const same =
    like.find((one) => sameTxHash(one.txHash, txHash)) ??
    like.find(({ effectiveAt }) => effectiveAt >= at) ??
    like.findLast(({ effectiveAt }) => effectiveAt >= since);
  if (!same) return at;
  const previous = standing[standing.indexOf(same) - 1];
  return Math.min(Math.max(at, previous?.effectiveAt ?? at), same.effectiveAt - 1);
}

/** Whether a write may have made the movement. A number is minted once while its token exists. */
function isLike(one: Movement, write: Movement): boolean {
  if (write.kind === 'mint') return isStart(one.kind);
  if (one.kind !== write.kind) return false;
  const isFrom = one.fromAddr === null || sameAddress(one.fromAddr, write.fromAddr);
  return write.kind === 'burn' || (isFrom && sameAddress(one.toAddr, write.toAddr));
}

function isSame(a: Movement, b: Movement): boolean {
  return (
    a.kind === b.kind && sameAddress(a.fromAddr, b.fromAddr) && sameAddress(a.toAddr, b.toAddr)
  );
}

function reversalOf(
  { id, fromAddr, toAddr, kind: _, ...movement }: Movement,
  by: { operationId: string | null; posting: number | null },
): NewMovement {
  return {
    ...movement,
    ...by,
    kind: 'reversal',
    fromAddr: toAddr,
    toAddr: fromAddr,
    reverses: must(id ?? undefined, 'number of a recorded movement'),
  };
}

type StoredHolder = typeof observedHolders.$inferSelect;

/** A token by its numbers. */
export type TokenRef = Pick<StoredHolder, 'contractId' | 'tokenId'>;

/** A holder that the reconciler has observed; its owner is empty when it is not known. */
export type ObservedHolder = Omit<DueHolder, 'id'>;

/** One that waits to be in the journal. */
export type DueHolder = Omit<StoredHolder, 'requestedAt' | 'problem'>;

/** The standing movements of tokens by `tokenKey`, each in the order of time. */
export type Journals = ReadonlyMap<string, readonly Movement[]>;

const MOVES: Partial<Record<Kind, MoveKind>> = {
  mint: 'mint',
  mint_sequential: 'mint',
  burn: 'burn',
  transfer_from: 'transfer',
  set_extra_data: 'data_change',
};

export function tokenKey({ contractId, tokenId }: TokenRef): string {
  return `${contractId}:${tokenId}`;
}

/** The tokens that operations and observations touch. */
export function tokensOf(
  operations: readonly Operation[],
  holders: readonly ObservedHolder[],
): TokenRef[] {
  const written = operations.flatMap(({ kind, contractId, tokenId }) =>
    MOVES[kind] && contractId !== null && tokenId !== null ? [{ contractId, tokenId }] : [],
  );
  const tokens = [...written, ...holders].map((token) => [tokenKey(token), token] as const);
  return [...new Map(tokens).values()];
}

/** The changes of the tokens of one batch. */
export class TokenWork {
  readonly #changes = new Map<string, TokenChange & TokenRef>();
  readonly #journals: Journals;

  constructor(journals: Journals) {
    this.#journals = journals;
  }

  /**
   * Adds the posting or reversal of an NFT write; false for a write of another kind.
   * @throws Unpostable when the token is not known, or what is to be reversed not recorded
   */
  addWrite(operation: Operation, posting: number): boolean {
    const kind = MOVES[operation.kind];
    if (!kind) return false;
    const { id, contractId, tokenId, fromAddr, toAddr, txHash, sentAt, state } = operation;
    if (contractId === null || tokenId === null) throw new Unpostable('the token is not known');
    const token = { contractId, tokenId };
    if (operation.inLedger) {
      const parties = { kind, fromAddr, toAddr, txHash, operationId: id, posting };
      const movement = { id: null, ...parties, notBefore: null, ...effectiveTimeOf(operation) };
      this.#changeOf(token).posted.push({ movement, sentAt });
      return true;
    }
    const journal = this.#journals.get(tokenKey(token)) ?? [];
    if (!journal.some(({ operationId }) => operationId === id))
      throw new Unpostable('what it reverses is not in the ledger');
    // It had settled, so its effect was observed, except when the chain failed it after all.
    const isObserved = state !== 'failed';
    this.#changeOf(token).takenBack.push({ operationId: id, posting, isObserved });
    return true;
  }

  addHolder(holder: ObservedHolder): void {
    this.#changeOf(holder).shown.push(shownOf(holder));
  }

  movements(): (NewMovement & TokenRef)[] {
    return [...this.#changes].flatMap(([key, { contractId, tokenId, ...change }]) =>
      planToken(this.#journals.get(key) ?? [], change).map((row) => {
        return { ...row, contractId, tokenId };
      }),
    );
  }

  #changeOf({ contractId, tokenId }: TokenRef): TokenChange {
    const key = tokenKey({ contractId, tokenId });
    const change = this.#changes.get(key) ?? {
      contractId,
      tokenId,
      posted: [],
      takenBack: [],
      shown: [],
    };
    this.#changes.set(key, change);
    return change;
  }
}

function shownOf({ owner, isNew, txHash, notBefore, observedAt }: ObservedHolder): Shown {
  return {
    holder: owner === null ? 'none' : { owner: owner || null },
    isNew,
    txHash,
    notBefore,
    effectiveAt: observedAt,
    effectiveBasis: 'observed',
  };
}
