/** Which writes share a commit, and what is tried next when one found open writes. */
import { describe, expect, it } from 'vitest';
import {
  type Attempt,
  firstAttempt,
  type Intent,
  lastAttempt,
  nextStep,
  planCommit,
  type Result,
  resultsOf,
} from '../../src/operations/intake/attempts.ts';
import type { SentWrite } from '../../src/operations/intake/conflicts.ts';
import { operationsDefaults } from '../../src/operations/operations.ts';

const NOW = 1_000_000;
const WAIT_MS = 2_000;
const settings = { ...operationsDefaults, conflictWaitMs: WAIT_MS };
const strict = { ...settings, refuseConflicts: true };
const ALICE = 'a';
let ids = 0;

const ASKED: Omit<Intent, 'id'> = {
  kind: 'give',
  owner: 'app',
  keyId: 'key_1',
  idempotencyKey: null,
  fingerprint: 'f',
  reference: null,
  method: 'POST',
  path: '/',
  contentType: null,
  body: Buffer.from(''),
  fields: {},
  preImage: null,
  expiresAt: null,
  dayLimit: null,
};

/** A write that moves this much on the wallet of Alice. */
function attemptOf(amount: bigint, intent: Partial<Intent> = {}): Attempt {
  const id = `op_${++ids}`;
  const scope = { effects: new Map([[ALICE, amount]]), conflictKey: undefined };
  const one = {
    scope,
    effects: [],
    feeMode: 'on_top' as const,
    names: [`wallet:${ALICE}`],
    arrival: ids,
    sendWithinMs: 30_000,
    intent: { ...ASKED, fields: { amount }, ...intent, id },
  };
  return firstAttempt(one, 'sending', [], settings);
}

function openWrite(amount: bigint, more: Partial<SentWrite> = {}): SentWrite {
  const effects = new Map([[ALICE, amount]]);
  return {
    id: `op_${++ids}`,
    effects,
    conflictKey: undefined,
    sentAt: NOW,
    ambiguous: false,
    ...more,
  };
}

const noneInFlight = () => [];

describe('A commit', () => {
  const waits = { expiresAt: NOW + 9_000 };
  it.each<[string, Attempt[], number]>([
    ['different amounts', [attemptOf(1n), attemptOf(2n), attemptOf(4n)], 3],
    ['equal amounts', [attemptOf(1n), attemptOf(1n), attemptOf(1n)], 1],
    ['an amount that is the sum of two others', [1n, 2n, 3n].map((n) => attemptOf(n)), 2],
    ['writes that may queue', [attemptOf(1n, waits), attemptOf(2n, waits)], 1],
    [
      'writes with one idempotency key',
      [attemptOf(1n, { idempotencyKey: 'k' }), attemptOf(1n, { idempotencyKey: 'k' })],
      2,
    ],
    ['one that is recorded beside any', [attemptOf(1n), { ...attemptOf(1n), known: undefined }], 2],
  ])('Of %s so many fit into a commit', (_, group, count) => {
    expect(planCommit(group, NOW, noneInFlight)).toHaveLength(count);
  });

  it('Writes in flight are known to it unless one conflicts', () => {
    const [apart, equal] = [openWrite(5n), openWrite(1n)];
    const attempt = attemptOf(1n);
    const known = (inFlight: SentWrite[]) => planCommit([attempt], NOW, () => inFlight)[0]?.known;
    expect(known([apart])).toEqual([apart.id]);
    expect(known([apart, equal])).toEqual([]);
  });

  it('Changes nothing of the attempts', () => {
    const attempt = Object.freeze(attemptOf(1n));
    const [planned] = planCommit([attempt], NOW, noneInFlight);
    expect(planned).toMatchObject({ attempt, ambiguous: false, sendDeadlineAt: NOW + 30_000 });
    expect(attempt).toMatchObject({ known: [], rechecks: 0, state: 'sending' });
  });

  it('A daily limit that earlier writes of the commit used up is tried again', () => {
    const group = [attemptOf(1n, { dayLimit: 5n }), attemptOf(4n, { dayLimit: 5n })];
    const result: Result = { result: 'day_limit' };
    const planned = planCommit(group, NOW, noneInFlight);
    const committed = new Map(planned.map((one) => [one.attempt, { planned: one, result }]));
    expect(resultsOf(group, committed, noneInFlight)).toEqual([result, { result: 'retry' }]);
  });

  it('A write that did not fit learns of the open ones that its neighbour found', () => {
    const group = [attemptOf(1n), attemptOf(1n)];
    const found = openWrite(1n);
    const [planned] = planCommit(group, NOW, noneInFlight);
    if (!planned) throw new Error('nothing was planned');
    const result: Result = { result: 'others_open', open: [found] };
    const committed = new Map([[planned.attempt, { planned, result }]]);
    const open = { result: 'others_open', open: [found] };
    expect(resultsOf(group, committed, noneInFlight)).toEqual([open, open]);
  });
});

describe('After an attempt that found open writes', () => {
  const times = { now: NOW, endAt: NOW + WAIT_MS };
  const over = { now: NOW + WAIT_MS, endAt: NOW + WAIT_MS };
  const equal = openWrite(1n);
  const others = Array.from({ length: 13 }, () => openWrite(1n));
  const queueable = attemptOf(1n, { expiresAt: NOW + 9_000 });
  const tired = { ...attemptOf(1n), rechecks: 5 };

  it.each<[string, Attempt, SentWrite[], typeof times, typeof settings, object]>([
    ['none conflicts', attemptOf(1n), [openWrite(5n)], times, settings, { step: 'try' }],
    ['none conflicts again and again', tired, [openWrite(5n)], times, settings, { step: 'last' }],
    [
      'none conflicts, but it would be refused',
      tired,
      [openWrite(5n)],
      times,
      strict,
      { step: 'try' },
    ],
    ['and its wait is over', tired, [openWrite(5n)], over, strict, { step: 'last' }],
    ['one conflicts', attemptOf(1n), [equal], times, settings, { step: 'wait', ms: WAIT_MS }],
    [
      'an ambiguous one conflicts',
      attemptOf(1n),
      [openWrite(1n, { ambiguous: true })],
      times,
      settings,
      { ms: 0 },
    ],
    ['more than twelve conflict', attemptOf(1n), others, times, settings, { ms: 0 }],
    [
      'they conflict, but it would be refused',
      attemptOf(1n),
      others,
      times,
      strict,
      { ms: WAIT_MS },
    ],
  ])('When %s', (_, attempt, open, at, of, expected) => {
    expect(nextStep(attempt, open, at, of)).toMatchObject(expected);
  });

  it('The last attempt queues what may queue, is refused as configured, or is ambiguous', () => {
    const attempt = attemptOf(1n);
    expect(lastAttempt(queueable, strict)).toMatchObject({ state: 'queued', known: undefined });
    expect(lastAttempt(attempt, strict)).toBeUndefined();
    expect(lastAttempt(attempt, settings)).toEqual({ ...attempt, known: undefined });
  });

  it('A write that more than twelve in flight conflict with is ambiguous at once', () => {
    const { write: one } = attemptOf(1n);
    expect(firstAttempt(one, 'sending', others, settings).known).toBeUndefined();
    expect(firstAttempt(one, 'sending', others, strict).known).toEqual([]);
    expect(firstAttempt(queueable.write, 'sending', others, settings).known).toEqual([]);
  });
});
