/**
 * The simulation from the command line, on a database of its own:
 * `node test/reconciler/simulate.ts --seed 7 --writes 10000 [--look-alike] [--daemons 2] [--mapped]`
 * It prints its seed and figures, and ends with 1 when a resolution was wrong. The same arguments
 * tell the same story.
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { connect } from '../../src/db/connect.ts';
import { openEmbedded } from '../../src/db/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import { WRITER } from '../../src/db/roles.ts';
import { monotonicMs } from '../../src/kernel/clock.ts';
import { printLine } from '../../src/kernel/terminal.ts';
import { closeAll } from '../upstream/scripted-service.ts';
import { buildWorld, type Plan } from './sim-world.ts';
import { runStory } from './simulation.ts';
import { type Figures, verdictOn } from './verdicts.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    writes: { type: 'string', default: '10000' },
    daemons: { type: 'string', default: '1' },
    wallets: { type: 'string', default: '80' },
    unharmed: { type: 'string', default: '5' },
    'look-alike': { type: 'boolean', default: false },
    mapped: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    trace: { type: 'string', default: '' },
  },
});

const plan: Plan = {
  seed: Number(values.seed),
  writes: Number(values.writes),
  mapped: values.mapped,
  lookAlike: values['look-alike'],
  daemons: Number(values.daemons),
  wallets: Number(values.wallets),
  members: Math.ceil(Number(values.wallets) / 4),
  unharmed: Number(values.unharmed),
};

/** Runs the plan on a fresh server, which is gone afterwards. */
async function simulate(): Promise<Figures> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-simulation-'));
  await chmod(folder, 0o711);
  const server = await openEmbedded({ directory: folder });
  const url = new URL(server.url);
  const admin = postgres(server.url, { max: 1, onnotice: () => {} });
  url.pathname = `/simulation_${randomBytes(4).toString('hex')}`;
  await admin.unsafe(`create database ${url.pathname.slice(1)}`);
  // The server outlives the story, so nothing is lost by not waiting for the disk.
  await admin.unsafe(`alter database ${url.pathname.slice(1)} set synchronous_commit = off`);
  await admin.end();
  await migrate(url.href);
  const db = connect({ url: url.href, role: WRITER, max: 8 });
  try {
    const world = await buildWorld(db, plan);
    try {
      const story = await runStory(world, printLine);
      printLine(`what happened: ${JSON.stringify(story.events)}`);
      if (values.trace) {
        const [op] = await db.sql`select * from tallyhook.operations
          where reference = ${values.trace}`;
        printLine(
          JSON.stringify(op, (_k, v) => (typeof v === 'bigint' ? String(v) : v)).slice(0, 3000),
        );
        const t =
          await db.sql`select from_state, to_state, at, cause, evidence from tallyhook.transitions where operation_id = ${op?.id}`;
        for (const row of t) printLine(JSON.stringify(row));
        const looks =
          await db.sql`select object, started_at - ${op?.sent_at} as x, started_at, result, cause, record->>'balance' b, judged_at, record->>'owner' ow, record->>'extraData' ex, record->>'status' st, substr(record->>'lastTxHash',1,8) h
          from tallyhook.looks where object in ('wallet:' || ${op?.from_key ?? ''}, 'wallet:' || ${op?.to_key ?? ''}, ${`token:${op?.contract_id}:${op?.token_id}`})
          and started_at between ${new Date(Number(op?.sent_at) - 9e6).toISOString()} and ${new Date(Number(op?.sent_at) + 9e5).toISOString()} order by started_at`.catch(
            (e) => [String(e)],
          );
        for (const row of looks) printLine(JSON.stringify(row));
        const others =
          await db.sql`select reference, kind, state, from_key, to_key, amount, fee_amount, sent_at, answered_at, token_id, substr(tx_hash,1,8) h, to_addr, extra_data from tallyhook.operations
          where (from_key in (${op?.from_key ?? ''}, ${op?.to_key ?? ''}) or to_key in (${op?.from_key ?? ''}, ${op?.to_key ?? ''}) or token_id = ${String(op?.token_id ?? -1)}::numeric)
          and sent_at between ${new Date(Number(op?.sent_at) - 9e6).toISOString()} and ${new Date(Number(op?.sent_at) + 9e5).toISOString()} order by sent_at`;
        for (const row of others)
          printLine(JSON.stringify(row, (_k, v) => (typeof v === 'bigint' ? String(v) : v)));
      }
      if (values.list) {
        const rows = await db.sql`select object, started_at, result, cause, record->>'total' as t,
          jsonb_array_length(record->'wanted') w, jsonb_array_length(record->'tokens') k, judged_at
          from tallyhook.looks where kind = 'sweep' order by started_at desc limit 20`;
        for (const row of rows) printLine(JSON.stringify(row));
        const objs = await db.sql`select name, next_look_at, failures, progress
          from tallyhook.objects where kind = 'sweep'`;
        for (const row of objs) printLine(JSON.stringify(row));
        const ops = await db.sql`select reference, kind, state, recorded_at, evidence
          from tallyhook.operations where state in ('unknown', 'undecided') limit 40`;
        for (const row of ops) {
          const applied = story.received.get(String(row.reference))?.map((r) => r.applied);
          printLine(`${JSON.stringify(row)} applied ${applied}`);
        }
        printLine(`now ${world.clock.now()}`);
      }
      return await verdictOn(world, story);
    } finally {
      await closeAll();
      await world.close();
    }
  } finally {
    await db.end();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function report(figures: Figures, seconds: number): void {
  const { unknown, undecided, open } = figures;
  const resolved = unknown === 0 ? 100 : (100 * (unknown - undecided - open)) / unknown;
  const { byKind, reasons, wrong, books, ...counts } = figures;
  printLine(`plan: ${JSON.stringify(plan)}`);
  printLine(`counts: ${JSON.stringify(counts)}`);
  printLine(`lost answers by kind: ${JSON.stringify(byKind)}`);
  for (const [why, names] of Object.entries(reasons))
    printLine(`undecided ${names.length} × ${why}: ${names.join(' ')}`);
  for (const line of wrong) printLine(`WRONG ${line}`);
  for (const line of books) printLine(`BOOKS ${line}`);
  printLine(
    `seed ${plan.seed}: ${figures.recorded} writes, ${unknown} lost answers, ` +
      `${resolved.toFixed(2)} % resolved, ${wrong.length} wrong, ${undecided} undecided, ` +
      `${open} open, ${seconds.toFixed(0)} s`,
  );
}

const startedAt = monotonicMs();
const figures = await simulate();
report(figures, (monotonicMs() - startedAt) / 1000);
process.exitCode = figures.wrong.length > 0 ? 1 : 0;
