/** What a batch does to tokens: the movements of NFT writes, by token. Pure. */
import { type Kind, type Operation, Unpostable } from '../../operations/operations.ts';
import { effectiveTimeOf } from '../posting.ts';
import type { observedHolders } from '../tables.ts';
import {
  type MoveKind,
  type Movement,
  type NewMovement,
  planToken,
  type Shown,
  type TokenChange,
} from './journal.ts';

/** A token by its numbers. */
export type TokenRef = Pick<Holder, 'contractId' | 'tokenId'>;
type Holder = typeof observedHolders.$inferSelect;

/** A holder that the reconciler has observed; its owner is empty when it is not known. */
export type ObservedHolder = Omit<DueHolder, 'id'>;

/** One that waits to be in the journal. */
export type DueHolder = Omit<Holder, 'requestedAt' | 'problem'>;

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
