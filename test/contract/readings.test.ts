/**
 * What the interface does not show, a service may read in its own way: the suite must not take one
 * reading for the interface, and no reading of the sandbox may break a statement.
 */
import { expect, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { makeService } from './service.ts';
import { judge } from './statement.ts';
import { STATEMENTS } from './statements.ts';

type Readings = NonNullable<Parameters<typeof startSandbox>[0]['switches']>;

const CLIENT = { clientId: 'test-client', clientSecret: 'test-secret' };

const SERVICES: [name: string, readings: Readings][] = [
  [
    'which answers and numbers in another way',
    {
      absent_token: 422,
      error_http: 'ok',
      check_expired: 'invalid_token',
      token_envelope: true,
      tx_log_no_base: 90_071_992_547_409_931_234n,
      time_zone: 'Asia/Seoul',
      expires_in_unit: 'ms',
      scope: 'wallet nft',
    },
  ],
  [
    'which rotates refresh tokens, and whose pages hold one token, newest first',
    {
      refresh_rotates: true,
      check_needs_basic: false,
      user_request: 'allow',
      list_order: 'owned_desc',
      per_page_default: 1,
      per_page_max: 1,
      expires_in_unit: 'h',
    },
  ],
  ['where the amount bears the fee', { fee: 'deducted', list_order: 'created_desc' }],
];

test.each(SERVICES)('Every statement holds at a service %s', async (_name, switches) => {
  const clock = { now: () => Date.now() };
  const sandbox = await startSandbox({ seed: 3, clock, settleMs: 5, switches, ...CLIENT });
  const { url } = sandbox;
  const service = makeService({ base: url, auth: url, tx: url, control: url, ...CLIENT });
  const contradicted = [];
  for (const each of STATEMENTS) {
    const verdict = await judge(each, service);
    if (verdict.result === 'not held') contradicted.push([each.title, verdict.why]);
  }
  await service.close();
  await sandbox.close();
  expect(contradicted).toEqual([]);
});
