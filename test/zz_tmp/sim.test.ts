import { afterEach, it } from 'vitest';
import { createDatabase } from '/work/main/test/harness/database.ts';
import { buildWorld, runStory } from '/work/main/test/reconciler/simulation.ts';
import { verdictOn } from '/work/main/test/reconciler/verdicts.ts';
import { closeAll } from '/work/main/test/upstream/scripted-service.ts';

afterEach(closeAll);
const [from, to, steps] = (process.env.SIM ?? '1,4,150').split(',').map(Number);
const total: Record<string, number> = {};
for (let seed = from; seed <= to; seed++)
  for (const mapped of [true, false])
    it(`seed ${seed} ${mapped}`, async () => {
      const database = await createDatabase();
      const plan = {
        seed,
        steps,
        mapped,
        wallets: 4 + (seed % 4) * 3,
        amountMax: [500, 20, 5][seed % 3],
      };
      const world = await buildWorld(database.db, plan);
      try {
        const story = await runStory(world, plan);
        const f = await verdictOn(world, story);
        console.log(
          seed,
          mapped,
          JSON.stringify(f, (k, v) => (typeof v === 'bigint' ? String(v) : v)),
        );
        console.log(
          JSON.stringify(
            await database.db
              .sql`select t.evidence->>'explanations' as why, t.evidence->>'basis' as basis, t.evidence#>>'{first,chance_of_coincidence}' as chance, o.kind, count(*)::int as n from tallyhook.transitions t join tallyhook.operations o on o.id=t.operation_id where to_state='undecided' group by 1,2,3,4`,
          ),
        );
        for (const w of f.wrong) {
          const e = story.asked.find((a) => w.startsWith(a.name + ':'));
          if (!e) continue;
          const same = story.asked.filter(
            (a) => a === e || (a.fields.tokenId && a.fields.tokenId === e.fields.tokenId),
          );
          for (const a of same) {
            const rows = await database.db
              .sql`select to_state, at, cause, evidence from tallyhook.transitions where operation_id=${a.id} order by id`;
            console.log(
              a.name,
              a.kind,
              JSON.stringify(a.fields, (k, v) => (typeof v === 'bigint' ? String(v) : v)),
              JSON.stringify(rows),
            );
          }
        }
      } finally {
        await world.sandbox.close();
        await database.drop();
      }
    }, 300_000);
