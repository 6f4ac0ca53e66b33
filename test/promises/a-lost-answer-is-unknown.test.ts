/**
 * Promise 3. A lost answer is unknown: never guessed, never sent again, ended by evidence or
 * people.
 */
import { expect, it } from 'vitest';
import { operationIdOf, useRig } from '../harness/rig.ts';

const rig = useRig();
const ENDED = ['operation.resolved', 'operation.undecided'];

it.each([
  ['applied', 'lost_answer', 41_001, 1, 'not_executed'],
  ['not applied', 'dropped', 41_002, 0, 'executed'],
] as const)(
  'A write that was %s without an answer is unknown, sent once, and never concluded wrongly',
  async (_title, kind, amount, times, wrong) => {
    await rig.watch(rig.world.ada, rig.world.ben);
    rig.world.sandbox.control.addFault({ kind, contains: String(amount) });
    const answer = await rig.app.give(rig.world.ada, amount);
    expect(answer.status).toBe(504);
    expect(answer.json).toMatchObject({ code: 'outcome_unknown' });
    await rig.eventOf(answer, 'operation.unknown');
    const id = operationIdOf(answer);
    const ended = await rig.app.until((e) => e.data.operation_id === id && ENDED.includes(e.type));
    expect(ended.data.outcome).not.toBe(wrong);
    expect(rig.effects(amount)).toHaveLength(times);
    const sends = await rig.world.database.owner.sql`
      select 1 as one from tallyhook.sends where operation_id = ${id}`;
    expect(sends).toHaveLength(1);
  },
);
