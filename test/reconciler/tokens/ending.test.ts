/** How a token ends the executed writes on it. */
import { describe, expect, it } from 'vitest';
import type { Operation } from '../../../src/operations/operations.ts';
import { endingOf, takerOf } from '../../../src/reconciler/tokens/ending.ts';
import type { ObservedToken } from '../../../src/reconciler/tokens/evidence.ts';
import { addr, at, HASH_A, HASH_B, token, write } from '../builders.ts';

describe('How a token ends an operation (accepted at 1,000 under hash A, read lag 1,000)', () => {
  const preImage = { token: { owner: addr(1) } };
  const accepted = { sent: 900, answered: 1_000, txHash: HASH_A, toAddr: addr(2), preImage };
  const late = { startedAt: at(3_000), readLagMs: 1_000, sameToken: true, lastHash: null };
  const early = { ...late, startedAt: at(1_500) };
  const moved = token({ owner: addr(2), lastTxHash: HASH_B });
  it.each([
    ['Its hash complete settles it', 'transfer_from', token(), early, 'settled'],
    [
      'Its hash in other letters settles it',
      'transfer_from',
      token({ lastTxHash: HASH_A.toUpperCase() }),
      early,
      'settled',
    ],
    [
      'Its hash in other letters fails it, and no other write is blamed',
      'transfer_from',
      token({ status: 3, lastTxHash: HASH_A.toUpperCase() }),
      late,
      'failed',
    ],
    ['Its hash failed fails it', 'transfer_from', token({ status: 3 }), early, 'failed'],
    ['Its hash pending leaves it', 'transfer_from', token({ status: 0 }), late, undefined],
    ['Its hash in progress leaves it', 'mint', token({ status: 2 }), late, undefined],
    ['A later hash with its effect settles it', 'transfer_from', moved, late, 'settled'],
    [
      'Another hash right after the answer may be an older one',
      'transfer_from',
      moved,
      early,
      undefined,
    ],
    [
      'A later hash without its effect leaves it',
      'transfer_from',
      token({ lastTxHash: HASH_B }),
      late,
      undefined,
    ],
    [
      'A later hash that is not complete leaves it',
      'transfer_from',
      { ...moved, status: 2 },
      late,
      undefined,
    ],
    ['A mint is settled by a later hash', 'mint', moved, late, 'settled'],
    ['Absence settles a burn', 'burn', 'absent', late, 'settled'],
    ['Absence right after its answer does not settle a burn', 'burn', 'absent', early, undefined],
    ['Absence does not fail a mint', 'mint', 'absent', late, undefined],
    ['Absence does not end a transfer', 'transfer_from', 'absent', late, undefined],
    ['A burn whose chain failed is failed', 'burn', token({ status: 3 }), late, 'failed'],
    [
      'A token that outlived a burn under a later hash fails it',
      'burn',
      token({ lastTxHash: HASH_B }),
      late,
      'failed',
    ],
    [
      'A token made again under the number does not fail a burn',
      'burn',
      token({ lastTxHash: HASH_B }),
      { ...late, sameToken: false },
      undefined,
    ],
  ] as const)('%s', (_title, kind, seen, observed, to) => {
    expect(endingOf(write('accepted', { ...accepted, kind }), seen, observed)?.to).toBe(to);
  });

  it('One found executed without a hash settles by its effect', () => {
    const found = write('executed', { kind: 'transfer_from', toAddr: addr(2), effectiveAt: at(0) });
    expect(endingOf(found, moved, late)?.to).toBe('settled');
    expect(endingOf(found, token(), late)).toBeUndefined();
  });
});

describe('How a write ends that the token does not prove under a later hash', () => {
  const late = { startedAt: at(9_000), readLagMs: 1_000, sameToken: true, lastHash: null };
  const owned = { ownedText: '2026-01-01 00:00:00' };
  /** As before the write: of wallet 1, without data, under hash A. */
  const preImage = {
    at: at(850),
    token: {
      lastTxHash: HASH_A,
      status: 1,
      owner: addr(1),
      extraData: '',
      ownedAtText: owned.ownedText,
    },
  };
  const own = { sent: 900, answered: 1_000, txHash: `0x${'c'.repeat(64)}`, preImage };
  const transfer = { ...own, kind: 'transfer_from', fromAddr: addr(1), toAddr: addr(2) } as const;
  const data = { ...own, kind: 'set_extra_data', extraData: '{}' } as const;
  const mint = { ...own, kind: 'mint', preImage: null } as const;
  const later = { sent: 2_000, answered: 2_100 };
  const onwards = { ...transfer, fromAddr: addr(2), toAddr: addr(3) };
  const onward = write('settled', { ...onwards, ...later });
  const burn = write('settled', { kind: 'burn', ...later });
  const sameAgain = write('accepted', { ...transfer, ...later });
  const movedOn = { ...token({ owner: addr(3), lastTxHash: HASH_B }), ownedText: 'later' };
  const asBefore = { ...token({ lastTxHash: HASH_B }), ...owned };
  const moved = { ...token({ owner: addr(2), lastTxHash: HASH_B }), ownedText: 'later' };
  const equalBefore = write('settled', { ...transfer, sent: 100, settledAt: at(800) });
  const dataBefore = { token: { ...preImage.token, extraData: '{}' } };

  type Row = [string, Operation, ObservedToken | 'absent', Operation[], string | undefined];
  it.each<Row>([
    ['A found transfer settles', write('executed', transfer), movedOn, [], 'settled'],
    [
      'A found transfer settles when the token is gone',
      write('executed', transfer),
      'absent',
      [],
      'settled',
    ],
    [
      'A found write waits under the hash from before it',
      write('executed', data),
      { ...token(), ...owned },
      [],
      undefined,
    ],
    [
      'A transfer settles once its receiver transferred the token',
      write('accepted', transfer),
      movedOn,
      [onward],
      'settled',
    ],
    [
      'A transfer to its own sender waits, since a later transfer does not need it',
      write('accepted', { ...transfer, toAddr: addr(1) }),
      { ...movedOn, owner: addr(3) },
      [write('settled', { ...transfer, ...later, toAddr: addr(3) })],
      undefined,
    ],
    [
      'A transfer waits where another may have brought the token to its receiver',
      write('accepted', transfer),
      movedOn,
      [onward, sameAgain],
      undefined,
    ],
    [
      'A transfer waits where another to the same receiver may be what the token shows',
      write('accepted', transfer),
      moved,
      [sameAgain],
      undefined,
    ],
    [
      'A transfer settles by its effect when an equal one had settled before it was sent',
      write('accepted', transfer),
      moved,
      [equalBefore],
      'settled',
    ],
    [
      'A data change waits when the token had the data already',
      write('accepted', { ...data, preImage: dataBefore }),
      { ...asBefore, extraData: '{}' },
      [],
      undefined,
    ],
    [
      'A write whose token was not observed before it waits',
      write('accepted', { ...transfer, preImage: null }),
      moved,
      [],
      undefined,
    ],
    [
      'A mint waits where another may be what the token shows',
      write('accepted', mint),
      moved,
      [write('accepted', mint)],
      undefined,
    ],
    [
      'A transfer fails when owner and time of ownership are as before',
      write('accepted', transfer),
      asBefore,
      [],
      'failed',
    ],
    [
      'A transfer waits while the hash is the one from before it',
      write('accepted', transfer),
      { ...token(), ...owned },
      [],
      undefined,
    ],
    [
      'A transfer waits while the hash is the one from before it, in other letters',
      write('accepted', transfer),
      { ...token({ lastTxHash: HASH_A.toUpperCase() }), ...owned },
      [],
      undefined,
    ],
    [
      'A transfer waits when the owner is another one',
      write('accepted', transfer),
      movedOn,
      [],
      undefined,
    ],
    [
      'A data change fails when the data is as before',
      write('accepted', data),
      asBefore,
      [],
      'failed',
    ],
    [
      'A data change waits when the data is another one',
      write('accepted', data),
      { ...asBefore, extraData: '{"by":"others"}' },
      [],
      undefined,
    ],
    [
      'A mint settles once its token was burned',
      write('accepted', mint),
      'absent',
      [burn],
      'settled',
    ],
    [
      'A burn fails when another burn took the token after it was sent',
      write('accepted', { ...own, kind: 'burn' }),
      'absent',
      [write('settled', { kind: 'burn', ...later, settledAt: at(3_000) })],
      'failed',
    ],
    [
      'A burn settles though another burn had taken the token of that number before',
      write('accepted', { ...own, kind: 'burn' }),
      'absent',
      [write('settled', { kind: 'burn', sent: 100, settledAt: at(800) })],
      'settled',
    ],
    [
      'A mint waits where another may have made the token',
      write('accepted', mint),
      'absent',
      [burn, write('accepted', mint)],
      undefined,
    ],
    [
      'A transfer waits until the transfer of its receiver has settled',
      write('accepted', transfer),
      movedOn,
      [write('accepted', { ...onwards, ...later })],
      undefined,
    ],
    [
      'A mint waits until the burn of its token has settled',
      write('accepted', mint),
      'absent',
      [write('accepted', { kind: 'burn', ...later })],
      undefined,
    ],
    [
      'A transfer waits when the transfer of its receiver was sent before it',
      write('accepted', transfer),
      movedOn,
      [write('settled', { ...onwards, sent: 100, settledAt: at(800) })],
      undefined,
    ],
    [
      'A transfer settles though an equal one is known as not executed',
      write('accepted', transfer),
      movedOn,
      [onward, write('not_executed', { ...transfer, ...later })],
      'settled',
    ],
    [
      'A transfer settles by its effect though an equal one was rejected',
      write('accepted', transfer),
      moved,
      [write('rejected', { ...transfer, ...later })],
      'settled',
    ],
    [
      'A mint settles once its token was burned, though another mint was rejected',
      write('accepted', mint),
      'absent',
      [burn, write('rejected', mint)],
      'settled',
    ],
    [
      'A mint settles by the token, though another mint is known as not executed',
      write('accepted', mint),
      moved,
      [write('not_executed', mint)],
      'settled',
    ],
    [
      'A mint settles by the token, though another one had settled before it was sent',
      write('accepted', mint),
      moved,
      [write('settled', { kind: 'mint', sent: 100, settledAt: at(900) })],
      'settled',
    ],
    [
      'A burn settles though another one is queued and was not sent',
      write('accepted', { ...own, kind: 'burn' }),
      'absent',
      [write('queued', { kind: 'burn', ...later })],
      'settled',
    ],
    [
      'A burn waits while another one, which was sent, may have taken the token',
      write('accepted', { ...own, kind: 'burn' }),
      'absent',
      [write('unknown', { kind: 'burn', ...later })],
      undefined,
    ],
    [
      'A found transfer waits while another write is at work',
      write('executed', transfer),
      movedOn,
      [write('unknown', { ...data, ...later }), write('sending', { ...onwards, ...later })],
      undefined,
    ],
    [
      'A mint in sequence waits where another mint may be what the token shows',
      write('accepted', { ...mint, kind: 'mint_sequential' }),
      moved,
      [write('accepted', mint)],
      undefined,
    ],
    [
      'A mint waits where a mint in sequence may be what the token shows',
      write('accepted', mint),
      moved,
      [write('accepted', { ...mint, kind: 'mint_sequential' })],
      undefined,
    ],
    [
      'A mint waits when only another mint settled later',
      write('accepted', mint),
      'absent',
      [write('settled', { kind: 'mint', ...later, settledAt: at(850) })],
      undefined,
    ],
    [
      'A data change waits when a transfer settled later, which does not need it',
      write('accepted', data),
      { ...asBefore, extraData: '{"by":"others"}' },
      [write('settled', { ...transfer, ...later, fromAddr: null })],
      undefined,
    ],
    [
      'A transfer waits when a burn settled later, which does not need it',
      write('accepted', transfer),
      'absent',
      [burn],
      undefined,
    ],
    [
      'A transfer waits when the transfer of its receiver was sent at the same instant',
      write('accepted', transfer),
      movedOn,
      [write('settled', { ...onwards, sent: 900 })],
      undefined,
    ],
    [
      'A burn settles though a transfer of the token settled after it was sent',
      write('accepted', { ...own, kind: 'burn' }),
      'absent',
      [write('settled', { ...transfer, ...later, settledAt: at(3_000) })],
      'settled',
    ],
    [
      'A burn settles though the burn before it settled the instant that it was sent',
      write('accepted', { ...own, kind: 'burn' }),
      'absent',
      [write('settled', { kind: 'burn', sent: 100, settledAt: at(900) })],
      'settled',
    ],
    [
      'A found mint settles when its token is gone',
      write('executed', mint),
      'absent',
      [],
      'settled',
    ],
    [
      'A transfer waits where an equal one settled after it was sent',
      write('accepted', transfer),
      movedOn,
      [onward, write('settled', { ...transfer, ...later, settledAt: at(3_000) })],
      undefined,
    ],
    [
      'A transfer settles though a write of another kind has its receiver',
      write('accepted', transfer),
      movedOn,
      [onward, write('accepted', { kind: 'mint', toAddr: addr(2), ...later })],
      'settled',
    ],
    [
      'A transfer settles by the instants of the sends, not of the records',
      write('accepted', transfer),
      movedOn,
      [write('settled', { ...onwards, sent: 950, recordedAt: at(800) })],
      'settled',
    ],
    [
      'A transfer waits when a burn of its receiver settled, which does not need it',
      write('accepted', transfer),
      'absent',
      [write('settled', { kind: 'burn', fromAddr: addr(2), ...later })],
      undefined,
    ],
    [
      'A data change waits when a transfer settled, whoever sent it',
      write('accepted', { ...data, fromAddr: addr(1), toAddr: addr(2) }),
      { ...asBefore, extraData: '{"by":"others"}' },
      [onward],
      undefined,
    ],
    [
      'A burn settles though another one, which had settled, was taken back',
      write('accepted', { ...own, kind: 'burn' }),
      'absent',
      [write('not_executed', { kind: 'burn', ...later, settledAt: at(3_000) })],
      'settled',
    ],
    [
      'A burn settles though another one was rejected',
      write('accepted', { ...own, kind: 'burn' }),
      'absent',
      [write('rejected', { kind: 'burn', ...later })],
      'settled',
    ],
  ])('%s', (_title, operation, seen, others, to) => {
    expect(endingOf(operation, seen, late, others)?.to).toBe(to);
  });
});

describe('Which of several burns removed an absent token', () => {
  const older = write('accepted', { kind: 'burn', sent: 0, answered: 100, txHash: HASH_A });
  const newer = write('accepted', { kind: 'burn', sent: 200, answered: 300, txHash: HASH_B });
  it.each([
    ['The newest if its hash was observed last', HASH_B, [newer, older], newer],
    ['The newest if its hash in other letters was', HASH_B.toUpperCase(), [older, newer], newer],
    ['Unknown if the hash of an older one was observed last', HASH_A, [newer, older], undefined],
    [
      'Unknown if the hash of none of several was observed last',
      'other',
      [older, newer],
      undefined,
    ],
    ['The only one', null, [older], older],
    ['No one without a burn', null, [], undefined],
  ] as const)('%s', (_title, hash, burns, taker) => {
    expect(takerOf(burns, hash)).toBe(taker);
  });
});

it.each([
  ['The newest by its answer, not by its id', 300, 200, 'older'],
  ['The newest by its id where the answers came at once', 300, 300, 'newer'],
  ['The newest by its answer, in either order', 200, 300, 'newer'],
] as const)(
  'Of two burns whose hash was observed last, took the token: %s',
  (_title, a, b, taker) => {
    const burns = {
      older: write('accepted', { kind: 'burn', id: 'op_1', answered: a, txHash: HASH_A }),
      newer: write('accepted', { kind: 'burn', id: 'op_2', answered: b, txHash: HASH_A }),
    };
    const { older, newer } = burns;
    expect(takerOf([older, newer], HASH_A)).toBe(burns[taker]);
    expect(takerOf([newer, older], HASH_A)).toBe(burns[taker]);
  },
);

it('A burn without an answer counts from when it was recorded', () => {
  const found = write('executed', { kind: 'burn', sent: 500, txHash: HASH_B });
  const earlier = write('accepted', { kind: 'burn', sent: 0, answered: 400, txHash: HASH_A });
  expect(takerOf([earlier, found], HASH_B)).toBe(found);
  expect(takerOf([earlier, found], HASH_A)).toBeUndefined();
});

it('An ending says why', () => {
  const late = { startedAt: at(9_000), readLagMs: 1_000, sameToken: true, lastHash: null };
  const preImage = {
    at: at(850),
    token: { lastTxHash: HASH_A, status: 1, owner: addr(1), extraData: '', ownedAtText: 'then' },
  };
  const own = { sent: 900, answered: 1_000, txHash: `0x${'c'.repeat(64)}`, preImage };
  const transfer = { ...own, kind: 'transfer_from', fromAddr: addr(1), toAddr: addr(2) } as const;
  const onward = { ...transfer, fromAddr: addr(2), toAddr: addr(3), sent: 2_000 };
  const burn = { ...own, kind: 'burn' } as const;
  const under = (state: Parameters<typeof token>[0]) => ({
    ...token({ lastTxHash: HASH_B, ...state }),
    ownedText: 'then',
  });
  const taken = write('settled', { kind: 'burn', sent: 2_000, settledAt: at(3_000) });
  const causes = [
    endingOf(write('accepted', { ...transfer, txHash: HASH_A }), token(), late),
    endingOf(write('accepted', { ...transfer, txHash: HASH_A }), token({ status: 3 }), late),
    endingOf(write('accepted', transfer), under({ owner: addr(2) }), late),
    endingOf(write('accepted', burn), under({}), late),
    endingOf(write('executed', transfer), under({ owner: addr(3) }), late),
    endingOf(write('accepted', transfer), under({ owner: addr(3) }), late, [
      write('settled', onward),
    ]),
    endingOf(write('accepted', transfer), under({}), late),
    endingOf(write('accepted', burn), 'absent', late),
    endingOf(write('accepted', burn), 'absent', late, [taken]),
  ];
  expect(causes.map((ending) => `${ending?.to}: ${ending?.cause}`)).toEqual([
    'settled: the chain completed its hash',
    'failed: the chain failed its hash',
    'settled: a later hash completed and its effect shows',
    'failed: a later hash completed and the token is still there',
    'settled: it was executed, and the token changed again',
    'settled: a later write that needs it settled',
    'failed: a later hash completed and the token is as before',
    'settled: the token is gone',
    'failed: another burn took the token',
  ]);
});
