/**
 * How long a page of the list of operations takes, by its filters: a whole daemon on an embedded
 * database full of settled operations, of which it is asked over HTTP as the console asks it.
 */

import { isoText } from '../../../../src/kernel/clock.ts';
import { ADMIN_KEY, environmentOf, spawnDaemon } from '../../../harness/daemon.ts';
import { REFILL_OPEN } from '../../../harness/open-operations.ts';
import { type Bench, figuresOf, quantileOf, type Result } from '../frame.ts';
import { onHistories } from './databases.ts';
import { HISTORY_END, OPERATOR_ADDR, userAddr } from './generate.ts';

const DAY_MS = 86_400_000;
const REQUESTS = 40;
const SLOWEST_MS = 300;
/** Every 20th operation was not executed, and the newest five wait for a person. */
const STATES = `
  set session_replication_role = replica;
  update tallyhook.operations set state = 'not_executed', settled_at = null
  where tx_log_no % 20 = 0;
  update tallyhook.operations set state = 'undecided', settled_at = null
  where id in (select id from tallyhook.operations order by recorded_at desc limit 5);
  ${REFILL_OPEN.join(';')}`;

/** Pages by name; a deep one is begun in the middle of the history or near its start. */
const PAGES: Record<string, Record<string, string>> = {
  'no filter': {},
  'the middle of the history': { until: isoText(HISTORY_END - 45 * DAY_MS) },
  'the oldest day': { until: isoText(HISTORY_END - 89 * DAY_MS) },
  'state settled': { state: 'settled' },
  'state not executed': { state: 'not_executed' },
  'state undecided': { state: 'undecided' },
  'kind transfer': { kind: 'transfer' },
  'kind burn, of which there is none': { kind: 'burn' },
  'state and kind': { state: 'not_executed', kind: 'give' },
  'state and kind that exclude each other': { state: 'not_executed', kind: 'transfer' },
  'state, kind and a day of the past': {
    state: 'not_executed',
    kind: 'give',
    since: isoText(HISTORY_END - 60 * DAY_MS),
    until: isoText(HISTORY_END - 59 * DAY_MS),
  },
  "a user's wallet": { addr: userAddr(1) },
  "a user's wallet, not executed": { addr: userAddr(1), state: 'not_executed' },
  'a wallet without operations': { addr: OPERATOR_ADDR },
  'an idempotency key': { idempotency_key: 'order-4711' },
  'a number': { tx_log_no: '4711' },
};

export const operationList: Bench = {
  name: 'operation-list',
  what: `a page of 50 operations, ${REQUESTS} requests per filter, each for the next page`,
  target: `1,000,000 stored operations: 95 of 100 pages within ${SLOWEST_MS} ms`,
  long: true,
  run: ({ stored }) =>
    onHistories(stored, { prepare: STATES }, (url, operations) => measure(url, operations)),
};

async function measure(url: string, operations: number): Promise<Result[]> {
  // There is no service: a daemon of this role asks it nothing.
  const daemon = await spawnDaemon(environmentOf(url, 'http://127.0.0.1:9'), {
    http: { port: 0 },
    log: { level: 'warn' },
    daemon: { roles: ['api'] },
  });
  try {
    const results: Result[] = [];
    for (const [what, filter] of Object.entries(PAGES)) {
      const times = (await walk(daemon.url, filter)).sort((a, b) => a - b);
      const p95 = quantileOf(times, 0.95);
      results.push({
        what: `${what}, ${operations.toLocaleString('en')} stored`,
        unit: 'ms at p95',
        measured: {
          ...figuresOf([{ value: p95, p50: quantileOf(times, 0.5), p99: quantileOf(times, 0.99) }]),
          min: times[0] ?? p95,
          max: times.at(-1) ?? p95,
        },
        target: { of: 'measured', atMost: SLOWEST_MS },
      });
    }
    return results;
  } finally {
    await daemon.stop();
  }
}

/** Page after page, and from the first again after the last; answers the time of each. */
async function walk(url: string, filter: Record<string, string>): Promise<number[]> {
  const times: number[] = [];
  let cursor: string | null = null;
  while (times.length < REQUESTS) {
    const query = new URLSearchParams({ limit: '50', ...filter, ...(cursor ? { cursor } : {}) });
    const begun = performance.now();
    const answer = await fetch(`${url}/api/operations?${query}`, {
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    });
    const page = (await answer.json()) as { next_cursor: string | null };
    times.push(performance.now() - begun);
    if (answer.status !== 200) throw new Error(`${query}: ${JSON.stringify(page)}`);
    cursor = page.next_cursor;
  }
  return times;
}
