/** Every path of the control surface on one screen; the document and the page are made from it. */
import type { z } from 'zod';
import { parseWhole } from '../../kernel/amounts.ts';
import { Failure } from '../../kernel/errors.ts';
import { faultSchema } from '../faults/kinds.ts';
import { switchPatchSchema } from '../faults/switches.ts';
import type { Control } from './control.ts';
import * as inputs from './inputs.ts';

export interface ControlRoute {
  method: 'GET' | 'POST' | 'DELETE';
  /** Below `/_sandbox`; names in braces are segments. */
  path: string;
  summary: string;
  body?: z.ZodType;
  /** A body that does something. */
  example?: object;
  /** What may follow the path: what each means by its name; all of them whole numbers. */
  query?: Record<string, string>;
  run(control: Control, params: Record<string, string>, body: unknown): unknown;
}

/** A route whose body has a schema, so that `run` sees it parsed. */
function posting<S extends z.ZodType>(
  path: string,
  summary: string,
  body: S,
  example: z.input<S> & object,
  run: (control: Control, body: z.output<S>, params: Record<string, string>) => unknown,
): ControlRoute {
  return {
    method: 'POST',
    path,
    summary,
    body,
    example,
    run: (control, params, given) => run(control, parsed(body, given), params),
  };
}

const LIMIT = 'At most so many; absent: 1000';

export const CONTROL_ROUTES: readonly ControlRoute[] = [
  {
    method: 'GET',
    path: '/state',
    summary: 'The whole world: app, time, switches, contracts, operators, members, wallets, tokens',
    run: (control) => control.state(),
  },
  {
    method: 'GET',
    path: '/requests',
    summary: 'Requests received, oldest first; at least the newest ten thousand are kept',
    query: { after: 'Begin after this number; absent: with the newest', limit: LIMIT },
    run: (control, { after, limit }) => ({
      data: control.requests(
        after === undefined ? undefined : Number(numberIn(after, 0n)),
        Number(numberIn(limit, 1000n)),
      ),
    }),
  },
  {
    method: 'GET',
    path: '/effects',
    summary: 'Writes that were applied, oldest first',
    query: { after: 'Begin after this number', limit: LIMIT },
    run: (control, { after, limit }) => ({
      data: control.effects(numberIn(after, 0n), Number(numberIn(limit, 1000n))),
    }),
  },
  posting(
    '/wallets/{addr}',
    "Sets a wallet behind the callers' back: its balance, a difference, its status; or makes one",
    inputs.walletChangeSchema,
    { delta: 100, status: 1 },
    (control, body, { addr = '' }) => control.setWallet(addr, body),
  ),
  posting(
    '/tokens/fail-next',
    'Lets the next writes to the chain fail',
    inputs.failNextSchema,
    { count: 1 },
    (control, { count }) => {
      control.failNext(count);
      return { fail_next: count };
    },
  ),
  posting(
    '/tokens/{contract_id}/{token_id}',
    "Changes a token behind the callers' back, or makes one; locked: true registers it on a market",
    inputs.tokenChangeSchema,
    { locked: true },
    (control, body, params) =>
      control.setToken(segment(params.contract_id), segment(params.token_id), body),
  ),
  {
    method: 'DELETE',
    path: '/tokens/{contract_id}/{token_id}',
    summary: 'Takes a token away, as a burn made elsewhere would',
    run: (control, params) =>
      control.removeToken(segment(params.contract_id), segment(params.token_id)),
  },
  posting(
    '/members',
    'Adds a member who can log in',
    inputs.memberSchema,
    { nickname: 'Zoe' },
    (control, body) => control.addMember(body),
  ),
  posting(
    '/redirect-uris',
    'Registers an address to which authorization codes may be sent',
    inputs.redirectSchema,
    { uri: 'http://127.0.0.1:3001/callback' },
    (control, { uri }) => ({ redirect_uris: control.addRedirectUri(uri) }),
  ),
  posting(
    '/maintenance',
    'Begins, announces or ends maintenance',
    inputs.maintenanceSchema,
    { state: 'announced', start_in_ms: 60_000, duration_ms: 600_000, message: 'New disks' },
    (control, body) => ({ maintenance: control.maintenance(body) }),
  ),
  {
    method: 'GET',
    path: '/faults',
    summary: 'Scripted faults and how often each was met',
    run: (control) => ({ data: control.faults() }),
  },
  posting(
    '/faults',
    'Scripts a fault',
    faultSchema,
    { kind: 'lost_answer', endpoint: 'give' },
    (control, body) => control.addFault(body),
  ),
  {
    method: 'DELETE',
    path: '/faults',
    summary: 'Forgets all faults',
    run: (control) => control.clearFaults(),
  },
  posting(
    '/clock',
    'Moves the clock of the world forward',
    inputs.clockSchema,
    { advance_ms: 60_000 },
    (control, body) => control.moveClock(body),
  ),
  posting(
    '/switches',
    'Turns switches: how the service reads what its document does not show',
    switchPatchSchema,
    { fee: 'deducted', read_lag_ms: 2_000 },
    (control, body) => control.setSwitches(body),
  ),
  posting(
    '/reset',
    'Forgets everything and sows a new world',
    inputs.resetSchema,
    { seed: 2 },
    (control, body) => control.reset(body),
  ),
];

/** @throws Failure `invalid_request`, naming the first member that is wrong */
function parsed<S extends z.ZodType>(schema: S, given: unknown): z.output<S> {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new Failure('invalid_request', `${issue?.path.join('.') || 'body'}: ${issue?.message}`);
}

function numberIn(text: string | undefined, absent: bigint): bigint {
  const value = text === undefined ? absent : parseWhole(text);
  if (value === undefined || value < 0n || value > 10n ** 15n) {
    throw new Failure('invalid_request', 'after and limit are whole numbers');
  }
  return value;
}

function segment(text: string | undefined): bigint {
  const value = parseWhole(text ?? '');
  if (value === undefined) throw new Failure('invalid_request', 'ids are whole numbers');
  return value;
}
