/**
 * The journal of a token: what was made elsewhere, by its writes and by what observations showed.
 * A line of a case is `time who what`; the journal is written in the same way.
 */
import { expect, it } from 'vitest';
import {
  type Movement,
  type NewMovement,
  planToken,
  type Shown,
  type TokenChange,
} from '../../src/ledger/tokens/journal.ts';

const KINDS = { mint: 'mint', move: 'transfer', burn: 'burn', data: 'data_change' } as const;

/** `10 op1 move A B`, `10 op1 mint B`, `10 op1 burn`, `10 op1 data`. */
function write(line: string): Movement {
  const [at = '', id = '', kind = '', first = null, second = null] = line.split(' ');
  const [fromAddr, toAddr] = kind === 'move' ? [first, second] : [null, first];
  return {
    id: null,
    kind: KINDS[kind as keyof typeof KINDS],
    fromAddr,
    toAddr,
    txHash: `h${id}`,
    operationId: id,
    posting: 1,
    notBefore: null,
    effectiveAt: Number(at),
    effectiveBasis: 'answer',
  };
}

/** `10 seen B`, `10 seen nobody`; `new` says that the token did not exist before. */
function seen(line: string): Shown {
  const [at, , who = '', isNew, txHash = null] = line.split(' ');
  return {
    holder: who === 'nobody' ? 'none' : { owner: who },
    isNew: isNew === 'new',
    txHash,
    notBefore: null,
    effectiveAt: Number(at),
    effectiveBasis: 'observed',
  };
}

/** What happens in one batch: a line each; `undo op1` and `fail op1` take a write back. */
function changeOf(line: string): TokenChange {
  const change: TokenChange = { posted: [], takenBack: [], shown: [] };
  const [first, second = ''] = line.split(' ');
  if (first === 'undo' || first === 'fail')
    change.takenBack.push({ operationId: second, posting: 2, isObserved: first === 'undo' });
  else if (second === 'seen') change.shown.push(seen(line));
  else {
    const [text = '', sent] = line.split(' sent ');
    change.posted.push({ movement: write(text), sentAt: sent ? Number(sent) : null });
  }
  return change;
}

/** A journal in the database: it keeps what is recorded, and drops what is reversed. */
function makeJournal() {
  let standing: Movement[] = [];
  let last = 0n;
  const recorded: NewMovement[] = [];
  return {
    recorded,
    add(line: string) {
      for (const { reverses, ...row } of planToken(standing, changeOf(line))) {
        recorded.push({ ...row, reverses });
        last += 1n;
        if (row.kind === 'reversal') standing = standing.filter(({ id }) => id !== reverses);
        else standing.push({ ...row, kind: row.kind, id: last });
      }
      standing = standing.toSorted(
        (a, b) => a.effectiveAt - b.effectiveAt || Number((a.id ?? 0n) - (b.id ?? 0n)),
      );
    },
    lines: () => standing.map(lineOf),
  };
}

function lineOf({ effectiveAt, operationId, kind, fromAddr, toAddr }: Movement): string {
  const parties = [fromAddr, toAddr].flatMap((addr) => addr ?? []);
  return [effectiveAt, operationId ?? 'elsewhere', kind, ...parties].join(' ');
}

const journalOf = (lines: readonly string[]) => {
  const journal = makeJournal();
  for (const line of lines) journal.add(line);
  return journal;
};

it.each([
  ['is an opening when it is first seen', ['10 seen A'], ['10 elsewhere opening A']],
  ['was minted elsewhere if it is new', ['10 seen A new'], ['10 elsewhere mint A']],
  [
    'that is seen unchanged has no further movement',
    ['10 seen A', '20 seen a'],
    ['10 elsewhere opening A'],
  ],
  [
    'was transferred elsewhere when another owner is seen',
    ['10 seen A', '20 seen B'],
    ['10 elsewhere opening A', '20 elsewhere transfer A B'],
  ],
  [
    'was burned elsewhere when it is gone',
    ['10 seen A', '20 seen nobody'],
    ['10 elsewhere opening A', '20 elsewhere burn A'],
  ],
  [
    'was minted elsewhere when it is there again after a burn',
    ['10 seen A', '20 seen nobody', '30 seen B'],
    ['10 elsewhere opening A', '20 elsewhere burn A', '30 elsewhere mint B'],
  ],
  ['that is never seen has no movement', ['10 seen nobody'], []],
  [
    'that our writes explain has nothing made elsewhere',
    ['10 op1 mint A', '20 op2 move A B', '21 seen B', '30 op3 burn', '31 seen nobody'],
    ['10 op1 mint A', '20 op2 transfer A B', '30 op3 burn'],
  ],
  [
    'that a write shows to exist has an opening before the write',
    ['20 op1 move A B'],
    ['19 elsewhere opening A', '20 op1 transfer A B'],
  ],
  [
    'of whom a write shows another owner was transferred elsewhere before the write',
    ['10 seen A', '20 op1 move C B', '21 seen B'],
    ['10 elsewhere opening A', '19 elsewhere transfer A C', '20 op1 transfer C B'],
  ],
  [
    'that we mint again was burned elsewhere before',
    ['10 op1 mint A', '20 op2 mint B sent 20'],
    ['10 op1 mint A', '19 elsewhere burn A', '20 op2 mint B'],
  ],
  [
    'of whom a write shows no owner belongs to the one who is seen next',
    ['10 op1 data', '20 seen B', '30 seen C'],
    ['9 elsewhere opening B', '10 op1 data_change', '30 elsewhere transfer B C'],
  ],
  [
    'of whom a write shows no owner belongs to whom a later write takes it from',
    ['10 op1 data', '20 op2 move B C'],
    ['9 elsewhere opening B', '10 op1 data_change', '20 op2 transfer B C'],
  ],
  [
    'whose data we change stays with its owner',
    ['10 seen A', '20 op1 data', '30 seen A'],
    ['10 elsewhere opening A', '20 op1 data_change'],
  ],
])('A token %s', (_, lines, journal) => {
  expect(journalOf(lines).lines()).toEqual(journal);
});

it.each([
  [
    'a reported transfer',
    ['10 seen A', '20 seen B', '15 op1 move A B'],
    ['10 elsewhere opening A', '15 op1 transfer A B'],
  ],
  [
    'a transfer that was reported with a time after the observation',
    ['10 seen A', '20 seen B', '27 op1 move A B'],
    ['10 elsewhere opening A', '19 op1 transfer A B'],
  ],
  [
    'a transfer that was reported with a time before the owner before',
    ['10 seen A', '20 seen C', '30 seen A', '40 seen B', '15 op1 move A B'],
    [
      '10 elsewhere opening A',
      '20 elsewhere transfer A C',
      '30 elsewhere transfer C A',
      '30 op1 transfer A B',
    ],
  ],
  [
    'a transfer that has the hash of the second of two equal ones',
    ['10 seen A', '20 seen B', '30 seen A', '40 seen B old hop1', '15 op1 move A B'],
    [
      '10 elsewhere opening A',
      '20 elsewhere transfer A B',
      '30 elsewhere transfer B A',
      '30 op1 transfer A B',
    ],
  ],
  [
    'a reported burn',
    ['10 seen A', '20 seen nobody', '25 op1 burn'],
    ['10 elsewhere opening A', '19 op1 burn'],
  ],
  ['a reported mint', ['20 seen A new', '15 op1 mint A'], ['15 op1 mint A']],
  [
    'a mint reported late, for an opening',
    ['20 seen A', '30 seen B', '25 op1 mint A'],
    ['19 op1 mint A', '30 elsewhere transfer A B'],
  ],
  [
    'a mint to another owner than was seen first',
    ['20 seen B', '15 op1 mint A'],
    ['15 op1 mint A', '20 elsewhere transfer A B'],
  ],
  [
    'a mint whose lost answer is resolved after a later write of ours',
    ['12 op2 move A B sent 11', '14 op1 mint A sent 10'],
    ['10 op1 mint A', '12 op2 transfer A B'],
  ],
  [
    'one of two steps that an observation showed as one',
    ['10 seen A', '20 seen C', '15 op1 move A B'],
    ['10 elsewhere opening A', '15 op1 transfer A B', '20 elsewhere transfer B C'],
  ],
  [
    'a write older than the opening',
    ['20 seen C', '15 op1 move A B'],
    ['14 elsewhere opening A', '15 op1 transfer A B', '20 elsewhere transfer B C'],
  ],
])('A movement made elsewhere gives way to %s', (_, lines, journal) => {
  expect(journalOf(lines).lines()).toEqual(journal);
});

it('A write whose hash was seen in other letters is what was seen, and nothing returned', () => {
  const seen = ['10 seen A', '20 seen B old HOP1', '30 op1 move A B sent 29', '31 seen B'];
  expect(journalOf(seen).lines()).toEqual(['10 elsewhere opening A', '19 op1 transfer A B']);
});

it('A write of our own is not taken for what happened elsewhere before it was sent', () => {
  const lines = ['10 seen A', '20 seen B', '30 seen A', '40 op1 move A B sent 39', '41 seen B'];
  expect(journalOf(lines).lines()).toEqual([
    '10 elsewhere opening A',
    '20 elsewhere transfer A B',
    '30 elsewhere transfer B A',
    '40 op1 transfer A B',
  ]);
});

it('What a write did that is called not executed was made elsewhere, and its own again later', () => {
  const journal = journalOf(['10 seen A', '20 op1 move A B', '21 seen B', 'undo op1']);
  expect(journal.lines()).toEqual(['10 elsewhere opening A', '20 elsewhere transfer A B']);
  journal.add('20 op1 move A B');
  expect(journal.lines()).toEqual(['10 elsewhere opening A', '19 op1 transfer A B']);
});

it('What a write did that the chain failed after all never was', () => {
  const journal = journalOf(['10 op1 mint A', 'fail op1']);
  expect(journal.lines()).toEqual([]);
});

it('A reversal names what it takes back, at the time of that', () => {
  const { recorded } = journalOf(['10 seen A', '20 seen B', '15 op1 move A B']);
  const [, seenMove, reversal, own] = recorded;
  expect(seenMove).toMatchObject({ kind: 'transfer', effectiveAt: 20, operationId: null });
  expect(reversal).toMatchObject({
    kind: 'reversal',
    reverses: 2n,
    effectiveAt: 20,
    fromAddr: 'B',
    toAddr: 'A',
    operationId: null,
  });
  expect(own).toMatchObject({ kind: 'transfer', effectiveAt: 15, operationId: 'op1' });
  expect(recorded).toHaveLength(4);
});
