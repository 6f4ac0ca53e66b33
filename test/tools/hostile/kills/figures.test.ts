/** What is found wrong in what came to the destinations of a run with kills. */
import { expect, it } from 'vitest';
import type { Arrival, Destination } from './destinations.ts';
import { figuresOf } from './figures.ts';

const LEASE_MS = 17_000;
const EVENTS = [1n, 2n, 3n].map((subjectSeq) => {
  return { id: `evt_${subjectSeq}`, type: 'wallet.observed', subject: 'wallet:a', subjectSeq };
});

const stored = (seq: number): Arrival => {
  return { id: `evt_${seq}`, body: `${seq}`, atMs: undefined, isAccepted: true };
};
const came = (seq: number, atMs: number, isAccepted = true): Arrival => {
  return { ...stored(seq), atMs, isAccepted };
};

/** The figures of one destination in order, each of whose events was claimed twice. */
function found(
  arrivals: readonly Arrival[],
  { removesRepeats = false, crashesMs = [] as number[], unanswered = [] as string[] } = {},
) {
  const destination: Destination = {
    name: 'it',
    endpoint: { ordering: 'subject' },
    removesRepeats,
    arrivals: async () => arrivals,
    close: async () => {},
  };
  const { destinations } = figuresOf(EVENTS, EVENTS, {
    destinations: [{ destination, endpointId: 'ep_1', arrivals }],
    events: [],
    claims: new Map(EVENTS.map(({ id }) => [`ep_1 ${id}`, 2])),
    unanswered: new Set(unanswered.map((id) => `ep_1 ${id}`)),
    leaseMs: LEASE_MS,
    crashesMs,
  });
  const { it = undefined } = destinations;
  const wrong = ['lost', 'early', 'excess', 'changed', 'disordered'] as const;
  return wrong.filter((fault) => (it?.[fault].length ?? 0) > 0);
}

it('A run with kills finds nothing wrong with repeats after a claim, a crash or no answer', () => {
  expect(found([came(1, 0), came(1, LEASE_MS), came(2, 20_000), came(3, 20_001)])).toEqual([]);
  expect(found([came(1, 0), came(1, 1), came(2, 2), came(3, 3)], { crashesMs: [0.5] })).toEqual([]);
  expect(found([stored(1), stored(2), stored(1), stored(3)])).toEqual([]);
  const soon = [came(1, 0), came(1, 1), came(2, 2), came(3, 3)];
  expect(found(soon, { unanswered: ['evt_1'] })).toEqual([]);
});

it.each([
  ['is lost', 'lost', [came(1, 0), came(2, 1), came(3, 2, false)]],
  ['comes again before its claim ends', 'early', [came(1, 0), came(1, 1), came(2, 2), came(3, 3)]],
  ['changes', 'changed', [stored(1), { ...stored(1), body: 'x' }, stored(2), stored(3)]],
  ['is stored too often', 'excess', [stored(1), stored(1), stored(1), stored(2), stored(3)]],
  ['overtakes another one', 'disordered', [stored(1), stored(3), stored(2)]],
  [
    'comes again after a later one',
    'disordered',
    [came(1, 0), came(2, 1), came(1, LEASE_MS), came(3, LEASE_MS)],
  ],
])('A run with kills finds an event that %s', (_, fault, arrivals) => {
  expect(found(arrivals)).toEqual([fault]);
});

it('A run with kills finds a repeat at a broker that removes repeats, and allows no crash for it', () => {
  const arrivals = [stored(1), stored(1), stored(2), stored(3)];
  expect(found(arrivals, { removesRepeats: true, crashesMs: [0] })).toEqual(['excess']);
});
