/** `verify` finds and names what people change in the evidence of all stages. */
import { beforeEach, describe, expect, it } from 'vitest';
import { verifyLedger } from '../../src/ledger/ledger.ts';
import { ROWS, tamperWith, transition } from './evidence-rows.ts';
import { useLedger } from './fixture.ts';
import { refusalOf } from './raw-posting.ts';

const rig = useLedger();

async function record(...statements: string[]): Promise<void> {
  for (const statement of statements) await rig.database.db.sql.unsafe(statement);
}

async function found(): Promise<string[]> {
  return (await verifyLedger(rig.database.db, [])).findings.map(
    ({ kind, text }) => `${kind}: ${text}`,
  );
}

const tamper = (statements: string) => tamperWith(rig.database.owner, statements);

const NOT_AS_RECORDED = 'is not as it was recorded';
const REMOVED = 'is in the chain but not in the database: it was removed';
const INSERTED = 'is in no batch of the chain: it was inserted';
const EDITED = 'do not name the rows in the chain: the table chained_rows was edited';

describe('Tampering as a superuser with evidence', () => {
  beforeEach(async () => {
    await record(transition('op_0'));
    await rig.runOnce();
    await record(...ROWS);
    rig.clock.advance(1_000);
    await rig.runOnce();
    await record(transition('op_2'), transition('op_3'));
  });

  it.each<[string, string, string[]]>([
    [
      'A changed observation that a transition cites',
      `update tallyhook.transitions set evidence = '{"balance":1}' where to_state = 'settled'`,
      [`changed: transition 3 ${NOT_AS_RECORDED}`],
    ],
    [
      'A removed action of a drift',
      'delete from tallyhook.drift_actions',
      [`removed: drift action 1 ${REMOVED}`],
    ],
    [
      'A removed transition, with one inserted in its place,',
      `delete from tallyhook.transitions where id = 2; ${transition('op_1')}`,
      [`removed: transition 2 ${REMOVED}`, `inserted: transition 6 ${INSERTED}`],
    ],
    [
      'An inserted decision',
      `insert into tallyhook.decisions (subject, n, decision, reason, approvals_needed, proposed_by,
         proposed_key, proposed_at) values ('op_1', 2, 'executed', 'r', 1, 'ann', 'key_1', now())`,
      [`inserted: decision op_1/2 ${INSERTED}`],
    ],
    [
      'An inserted approval',
      `insert into tallyhook.approvals values ('per_1', 1, 'ann', 'eve', 'key_3', now())`,
      [`inserted: approval per_1/1/eve ${INSERTED}`],
    ],
    [
      'An approval of another owner',
      `update tallyhook.approvals set owner = 'eve'`,
      [
        `removed: approval per_1/1/bob/ops ${REMOVED}`,
        `inserted: approval per_1/1/eve ${INSERTED}`,
      ],
    ],
    [
      'An edited reason of a released quarantine',
      `update tallyhook.quarantine_releases set reason = 'other'`,
      [`changed: quarantine release 1 ${NOT_AS_RECORDED}`],
    ],
    [
      'An edited period',
      `update tallyhook.periods set report_hash = 'i'`,
      [`changed: period per_1 ${NOT_AS_RECORDED}`],
    ],
    [
      'An edited action of a period',
      `update tallyhook.period_actions set by = 'eve'`,
      [`changed: period action 1 ${NOT_AS_RECORDED}`],
    ],
    [
      'An edited identity of a drift',
      `update tallyhook.drifts set evidence = '{"seen":8}'`,
      [`changed: drift drf_1 ${NOT_AS_RECORDED}`],
    ],
    [
      'A row taken out of the list of a batch',
      `update tallyhook.chained_rows set row_ids = '{2}'
       where batch_id = 2 and source = 'transition'`,
      [`chain_edited: chained rows of batch 2 ${EDITED}`, `inserted: transition 3 ${INSERTED}`],
    ],
    [
      'Another order in the list of a batch',
      `update tallyhook.chained_rows set row_ids = '{3,2}'
       where batch_id = 2 and source = 'transition'`,
      [`chain_edited: chained rows of batch 2 ${EDITED}`],
    ],
    [
      'An inserted transition that is added to the list of a batch',
      `${transition('op_9')}; update tallyhook.chained_rows set row_ids = '{2,3,6}'
       where batch_id = 2 and source = 'transition'`,
      [
        `changed: transition 6 ${NOT_AS_RECORDED}`,
        `chain_edited: chained rows of batch 2 ${EDITED}`,
      ],
    ],
    [
      'An inserted transition in a list without a batch',
      `${transition('op_9')};
       insert into tallyhook.chained_rows values (0, 'transition', '{6}')`,
      [`inserted: transition 6 ${INSERTED}`],
    ],
    [
      'A transition taken out of what waits',
      `delete from tallyhook.unchained_rows where row_ids = '{5}'`,
      [`inserted: transition 5 ${INSERTED}`],
    ],
    [
      'An edited digest of evidence in the chain table',
      `update tallyhook.chain set evidence = sha256('x') || substr(evidence, 33)
       where batch_id = 2`,
      ['chain_edited: chain row 2 does not follow from the row before: it was edited'],
    ],
  ])('%s is found and named', async (_what, statements, expected) => {
    expect(await found()).toEqual([]);
    await tamper(statements);
    expect(await found()).toEqual(expected);
  });

  it('A row that was changed before its batch is found after it', async () => {
    await tamper(`update tallyhook.transitions set cause = 'other' where operation_id = 'op_2'`);
    rig.clock.advance(1_000);
    await rig.runOnce();
    expect(await found()).toEqual([`changed: transition 4 ${NOT_AS_RECORDED}`]);
  });

  it('A chain row that is missing lets none of its evidence seem inserted', async () => {
    await tamper('delete from tallyhook.chain where batch_id = 1');
    expect(await found()).toEqual([
      'chain_edited: chain row 1 is missing: the table chain was edited',
    ]);
  });
});

describe('The writer role, which has the rights of the daemon,', () => {
  it.each([
    `insert into tallyhook.chained_rows values (1, 'transition', '{1}')`,
    `update tallyhook.chained_rows set row_ids = '{}'`,
    'delete from tallyhook.chained_rows',
    'truncate tallyhook.chained_rows',
    `insert into tallyhook.unchained_rows (source, row_ids, digests) values ('drift', '{1}', '')`,
    `update tallyhook.unchained_rows set row_ids = '{}'`,
    'delete from tallyhook.unchained_rows',
    'truncate tallyhook.unchained_rows',
    'select tallyhook.take_evidence(1)',
    'alter table tallyhook.transitions disable trigger transitions_to_chain',
    `create temp table t (id bigint); create trigger t after insert on t
       referencing new table as new_rows for each statement
       execute function tallyhook.transitions_to_chain()`,
  ])('may not: %s', async (statement) => {
    await record(transition('op_1'));
    await rig.runOnce();
    const { db } = rig.database;
    expect(await refusalOf(db, (tx) => tx.sql.unsafe(statement))).toBe('42501');
  });
});
