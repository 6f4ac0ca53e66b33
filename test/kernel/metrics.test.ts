/** The names and series of metrics. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { beginSeries, makeMetrics } from '../../src/kernel/telemetry/metrics.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Logins, and the publication of events, have names of the same form. */
const OTHERS = /^tallyhook_(daemon|owner|writer|finance|person|events)$/;

it('Every metric that documents, alerts and the dashboard name exists', async () => {
  const text = await makeMetrics().text();
  const known = new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name));
  const files = globSync('{docs,config}/*.{md,yaml,json}', { cwd: ROOT });
  const named = files.flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(/\b(tallyhook|nodejs)_[a-z0-9_]+/g)].map(
      ([name]) => name,
    ),
  );
  expect(named.length).toBeGreaterThan(40);
  const metrics = named.filter((name) => !OTHERS.test(name));
  const unknown = metrics.filter(
    (name) => !known.has(name) && !known.has(name.replace(/_(bucket|sum|count)$/, '')),
  );
  expect(unknown).toEqual([]);
});

it('The series of all combinations of values begin at 0, and what was counted before stays', async () => {
  const { polls, passSeconds, text } = makeMetrics();
  polls.inc({ kind: 'token', result: 'seen' }, 3);
  beginSeries(polls, { kind: ['token', 'wallet'], result: ['seen', 'absent'] });
  beginSeries(passSeconds, { worker: ['ledger'] });
  const lines = (await text()).split('\n');
  expect(lines.filter((line) => /^tallyhook_(polls|worker_pass_seconds_count)/.test(line))).toEqual(
    [
      'tallyhook_polls_total{kind="token",result="seen"} 3',
      'tallyhook_polls_total{kind="token",result="absent"} 0',
      'tallyhook_polls_total{kind="wallet",result="seen"} 0',
      'tallyhook_polls_total{kind="wallet",result="absent"} 0',
      'tallyhook_worker_pass_seconds_count{worker="ledger"} 0',
    ],
  );
});
