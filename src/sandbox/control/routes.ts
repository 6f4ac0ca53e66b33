/** The paths of the control surface, from which its OpenAPI document and its page are made. */
import type { z } from 'zod';
import { parseWhole } from '../../kernel/amounts.ts';
import { Failure } from '../../kernel/errors.ts';
import { faultSchema } from '../faults/kinds.ts';
import { switchPatchSchema } from '../state/switches.ts';
import {
  type Control,
  clockSchema,
  failNextSchema,
  maintenanceSchema,
  memberSchema,
  redirectSchema,
  resetSchema,
  tokenChangeSchema,
  walletChangeSchema,
} from './control.ts';

type Params = Record<string, string>;

export interface ControlRoute {
  method: 'GET' | 'POST' | 'DELETE';
  /** Below `/_sandbox`; names in braces are segments. */
  path: string;
  summary: string;
  body?: z.ZodType;
  /** A valid body that has an effect. */
  example?: object;
  /** Descriptions of the query parameters; all are whole numbers. */
  query?: Record<string, string>;
  run(control: Control, params: Params, body: unknown): unknown;
}

const get = (
  path: string,
  summary: string,
  run: (control: Control, params: Params) => unknown,
  query: Record<string, string> = {},
): ControlRoute => ({ method: 'GET', path, summary, run, query });

const remove = (
  path: string,
  summary: string,
  run: (control: Control, params: Params) => unknown,
): ControlRoute => ({ method: 'DELETE', path, summary, run });

/** A route whose body is validated before `run`. */
const post = <S extends z.ZodType>(
  path: string,
  summary: string,
  body: S,
  example: z.input<S> & object,
  run: (control: Control, body: z.output<S>, params: Params) => unknown,
): ControlRoute => ({
  method: 'POST',
  path,
  summary,
  body,
  example,
  run: (control, params, value) => run(control, parsed(body, value), params),
});

const LIMIT = 'The most entries returned; 1000 by default';

export const CONTROL_ROUTES: readonly ControlRoute[] = [
  get(
    '/state',
    'The whole world: app, time, switches, contracts, operators, members, wallets, tokens',
    (control) => control.state(),
  ),
  get(
    '/requests',
    'Requests received, oldest first; the newest ten thousand are kept',
    (control, { after, limit }) => {
      const from = after === undefined ? undefined : Number(numberIn(after, 0n));
      return { data: control.requests(from, Number(numberIn(limit, 1000n))) };
    },
    { after: 'Start after this number; the newest requests by default', limit: LIMIT },
  ),
  get(
    '/effects',
    'Applied writes, oldest first',
    (control, { after, limit }) => ({
      data: control.effects(numberIn(after, 0n), Number(numberIn(limit, 1000n))),
    }),
    { after: 'Start after this number', limit: LIMIT },
  ),
  post(
    '/wallets/{addr}',
    'Sets or creates a wallet: its balance, a difference to it, its status',
    walletChangeSchema,
    { delta: 100, status: 1 },
    (control, body, { addr = '' }) => control.setWallet(addr, body),
  ),
  post(
    '/tokens/fail-next',
    'Makes the next chain writes fail',
    failNextSchema,
    { count: 1 },
    (control, { count }) => {
      control.failNext(count);
      return { fail_next: count };
    },
  ),
  post(
    '/tokens/{contract_id}/{token_id}',
    'Changes or creates a token; locked: true registers it on a market',
    tokenChangeSchema,
    { locked: true },
    (control, body, { contract_id, token_id }) =>
      control.setToken(segment(contract_id), segment(token_id), body),
  ),
  remove(
    '/tokens/{contract_id}/{token_id}',
    'Deletes a token, as a burn by another app does',
    (control, { contract_id, token_id }) =>
      control.removeToken(segment(contract_id), segment(token_id)),
  ),
  post(
    '/members',
    'Adds a member who can log in',
    memberSchema,
    { nickname: 'Zoe' },
    (control, body) => control.addMember(body),
  ),
  post(
    '/redirect-uris',
    'Registers a redirect URI for authorization codes',
    redirectSchema,
    { uri: 'http://127.0.0.1:3001/callback' },
    (control, { uri }) => ({ redirect_uris: control.addRedirectUri(uri) }),
  ),
  post(
    '/maintenance',
    'Starts, announces or ends maintenance',
    maintenanceSchema,
    { state: 'announced', start_in_ms: 60_000, duration_ms: 600_000, message: 'New disks' },
    (control, body) => ({ maintenance: control.maintenance(body) }),
  ),
  get('/faults', 'Scripted faults and how many requests met each', (control) => ({
    data: control.faults(),
  })),
  post(
    '/faults',
    'Scripts a fault',
    faultSchema,
    { kind: 'lost_answer', endpoint: 'give' },
    (control, body) => control.addFault(body),
  ),
  remove('/faults', 'Deletes all faults', (control) => control.clearFaults()),
  post(
    '/clock',
    'Moves the clock of the world forward',
    clockSchema,
    { advance_ms: 60_000 },
    (control, body) => control.moveClock(body),
  ),
  post(
    '/switches',
    'Sets switches: how the service behaves where its interface is silent',
    switchPatchSchema,
    { fee: 'deducted', read_lag_ms: 2_000 },
    (control, body) => control.setSwitches(body),
  ),
  post(
    '/reset',
    'Deletes everything and creates a new world',
    resetSchema,
    { seed: 2 },
    (control, body) => control.reset(body),
  ),
];

/** @throws Failure `invalid_request`, naming the first field that is wrong */
function parsed<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new Failure('invalid_request', `${issue?.path.join('.') || 'body'}: ${issue?.message}`);
}

function numberIn(text: string | undefined, byDefault: bigint): bigint {
  const value = text === undefined ? byDefault : parseWhole(text);
  if (value === undefined || value < 0n || value > 10n ** 15n) {
    throw new Failure('invalid_request', 'after and limit: expected whole numbers up to 10^15');
  }
  return value;
}

function segment(text: string | undefined): bigint {
  const value = parseWhole(text ?? '');
  if (value === undefined) {
    throw new Failure('invalid_request', 'contract_id and token_id: expected whole numbers');
  }
  return value;
}
