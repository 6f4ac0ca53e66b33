/**
 * Promise 3. A lost answer is unknown: never guessed, never sent again, ended by evidence or
 * people.
 */
import { describe, expect, it } from 'vitest';
import { type Answered, makeApp } from '../harness/app.ts';
import { operationIdOf, type Rig, useRig } from '../harness/rig.ts';

const LOST = [
  ['applied', 'lost_answer', 1, 'executed'],
  ['not applied', 'dropped', 0, 'not_executed'],
] as const;
let amount = 41_000;

/** A give whose answer is lost; answers once it is unknown. */
async function loseAnswer(rig: Rig, kind: 'lost_answer' | 'dropped') {
  await rig.watch(rig.world.ada, rig.world.ben);
  rig.world.sandbox.control.addFault({ kind, contains: String(++amount) });
  const answer = await rig.app.give(rig.world.ada, amount);
  expect(answer.status).toBe(504);
  expect(answer.json).toMatchObject({ code: 'outcome_unknown' });
  await rig.eventOf(answer, 'operation.unknown');
  return answer;
}

/** The states that it went through, the last cause, and how often it was sent and applied. */
async function historyOf(rig: Rig, answer: Answered) {
  const { sql } = rig.world.database.owner;
  const id = operationIdOf(answer);
  const transitions = await sql<{ state: string; cause: string }[]>`
    select to_state as state, cause from tallyhook.transitions where operation_id = ${id}
    order by id`;
  const sends = await sql`
    select 1 as one from tallyhook.transitions
    where operation_id = ${id} and deadline_at is not null`;
  return {
    states: transitions.map(({ state }) => state),
    causes: transitions.map(({ cause }) => cause),
    sends: sends.length,
    applied: rig.effects(amount).length,
  };
}

describe('Where evidence is enough', () => {
  // On the slowest machine evidence comes before people are asked.
  const rig = useRig({
    reconciler: { read_lag_ms: 50, quiescence_ms: 400, undecided_after_ms: 60_000 },
  });

  it.each(LOST)(
    'A write that was %s without an answer is unknown, sent once, and ends as that by evidence',
    async (_title, kind, applied, outcome) => {
      const answer = await loseAnswer(rig, kind);
      const ended = await rig.eventOf(answer, 'operation.resolved');
      expect(ended.data.outcome).toBe(outcome);
      const history = await historyOf(rig, answer);
      expect(history).toMatchObject({ sends: 1, applied });
      expect(history.states.slice(0, 3)).toEqual(['sending', 'unknown', outcome]);
      expect(history.causes[2]).toMatch(/^evidence: /);
    },
  );
});

describe('Where evidence is not enough', () => {
  const rig = useRig({
    reconciler: { read_lag_ms: 50, quiescence_ms: 400, undecided_after_ms: 1, one_sided: 'people' },
  });

  it.each(LOST)(
    'A write that was %s without an answer is unknown, sent once, and ended by two people only',
    async (_title, kind, applied, outcome) => {
      const answer = await loseAnswer(rig, kind);
      await rig.eventOf(answer, 'operation.undecided');
      const path = `/api/operations/${operationIdOf(answer)}`;
      const personOf = async (owner: string) => {
        const input = { name: owner, owner, scopes: ['decide', 'read'] };
        const { json } = await rig.app.call('POST', '/api/keys', input);
        return makeApp(() => rig.daemon.url, json.key);
      };
      const [ann, bob] = [await personOf('ann'), await personOf('bob')];
      const reason = 'the receipt says so';
      const proposed = await ann.call('POST', `${path}/decide`, { outcome, reason });
      expect(proposed.status, proposed.text).toBe(201);
      expect((await ann.call('POST', `${path}/approve`, {})).status).toBe(409);
      expect((await rig.app.call('GET', path)).json.state).toBe('undecided');
      const approved = await bob.call('POST', `${path}/approve`, {});
      expect(approved.status, approved.text).toBe(200);
      const history = await historyOf(rig, answer);
      expect(history).toMatchObject({ sends: 1, applied });
      const states = ['sending', 'unknown', 'undecided', outcome];
      expect(history.states.slice(0, 5)).toEqual(states);
    },
  );
});
