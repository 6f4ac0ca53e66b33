/** What a proof concludes from a database and what was known of it. */
import { expect, it } from 'vitest';
import { findingOf } from '../../src/daemon/identity.ts';
import type { Identity } from '../../src/db/checks/identity.ts';

const KNOWN: Identity = { system: '1', oid: '2', table: '4', timeline: '00000001', file: null };
const LATER = { ...KNOWN, timeline: '00000002' };
const OTHER = { ...KNOWN, system: '9' };
/** The database that was recorded, at a start. */
const START = {
  recorded: KNOWN,
  present: KNOWN,
  counter: 11,
  noted: undefined,
  proved: undefined,
  lacksSend: false,
};
/** The same for a daemon that runs. */
const RUNNING = { ...START, noted: { identity: KNOWN, counter: 10 }, proved: KNOWN };

it.each<[string, Parameters<typeof findingOf>[0], ReturnType<typeof findingOf>]>([
  ['that is recorded, at a start', START, undefined],
  ['that is recorded, while it runs', RUNNING, undefined],
  ['whose counter is where it was', { ...RUNNING, counter: 10 }, 'snapshot'],
  [
    'whose counter is behind the note of DATA_DIR',
    { ...RUNNING, counter: 3, proved: undefined },
    'snapshot',
  ],
  ['that lacks its last send', { ...RUNNING, lacksSend: true }, 'snapshot'],
  ['that is not the recorded one', { ...START, present: OTHER }, 'restored'],
  [
    'that recorded itself and is not the one it had',
    { ...RUNNING, recorded: OTHER, present: OTHER },
    'restored',
  ],
  [
    'that was restored while the daemon was down, and released',
    { ...RUNNING, recorded: OTHER, present: OTHER, proved: undefined, counter: 3 },
    undefined,
  ],
  ['that was promoted', { ...RUNNING, present: LATER }, 'failover'],
  [
    'that was promoted, behind by some counts',
    { ...RUNNING, present: LATER, counter: 8 },
    'failover',
  ],
  [
    'that was promoted without its last send',
    { ...RUNNING, present: LATER, lacksSend: true },
    'lost',
  ],
  [
    'whose promotion another daemon found',
    { ...RUNNING, recorded: LATER, present: LATER },
    undefined,
  ],
  [
    'whose promotion another daemon found, without its last send',
    { ...RUNNING, recorded: LATER, present: LATER, lacksSend: true },
    'lost',
  ],
])('A daemon judges a database %s', (_, facts, finding) => {
  expect(findingOf(facts)).toBe(finding);
});
