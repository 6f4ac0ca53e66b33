/** Every statement holds for all that a service may do where the interface is silent. */
import { expect, it } from 'vitest';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import { makeService } from './client/service.ts';
import { checkStatement } from './statement.ts';
import { STATEMENTS } from './statements.ts';

type Readings = NonNullable<Parameters<typeof startSandbox>[0]['switches']>;

const CLIENT = { clientId: 'test-client', clientSecret: 'test-secret' };

const SERVICES: [name: string, readings: Readings][] = [
  [
    'with other error codes, numbers and formats',
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
    'that rotates refresh tokens and returns pages of one token, newest first',
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
  ['that deducts the fee from the amount', { fee: 'deducted', list_order: 'created_desc' }],
];

it.each(SERVICES)('Every statement holds at a service %s', async (_name, switches) => {
  const clock = { now: () => Date.now() };
  const sandbox = await startSandbox({ seed: 3, clock, settleMs: 5, switches, ...CLIENT });
  const { url } = sandbox;
  const service = makeService({ base: url, auth: url, tx: url, control: url, ...CLIENT });
  const contradicted = [];
  for (const each of STATEMENTS) {
    const checked = await checkStatement(each, service);
    if (checked.result === 'not held') contradicted.push([each.title, checked.why]);
  }
  await service.close();
  await sandbox.close();
  expect(contradicted).toEqual([]);
});
