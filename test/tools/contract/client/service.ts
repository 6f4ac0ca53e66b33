/**
 * The service under test: its addresses, access tokens and options. It sends requests unchanged and
 * never repeats one.
 */
import { Agent, request } from 'undici';
import { NotChecked } from '../statement.ts';
import { type Control, makeControl } from './control.ts';
import { logIn, type UserTokens } from './login.ts';
import { type Reply, replyOf } from './reply.ts';

export interface ServiceOptions {
  base: string;
  auth: string;
  tx: string;
  clientId?: string | undefined;
  clientSecret?: string | undefined;
  /** A gateway's key, sent in addition to the service's tokens. */
  key?: string | undefined;
  contract?: string | undefined;
  operator?: string | undefined;
  wallet?: string | undefined;
  other?: string | undefined;
  userToken?: string | undefined;
  refreshToken?: string | undefined;
  redirectUri?: string | undefined;
  /** The reasonType of transactions; allowed values are not shown. */
  reason?: string | undefined;
  /** How many service tokens a transaction moves; 1 by default. */
  amount?: string | undefined;
  control?: string | undefined;
  /** How long reads may lag behind writes, in milliseconds. */
  patienceMs?: number | undefined;
}

export type Host = 'base' | 'auth' | 'tx';

/** The credentials of a request; `app` is HTTP Basic with the client's id and secret. */
export type As = 'client' | 'user' | 'app' | 'anonymous' | { bearer: string } | { basic: string };

interface Sending {
  as?: As;
  query?: Record<string, string>;
  form?: Record<string, string>;
  /** A JSON body, as text or as a value. */
  json?: string | object;
  headers?: Record<string, string>;
}

export interface Service {
  options: ServiceOptions;
  /** Throws when there is no response. */
  send(host: Host, method: string, path: string, sending?: Sending): Promise<Reply>;
  clientToken(): Promise<string>;
  /** Tokens of a logged-in end user. */
  user(): Promise<UserTokens>;
  /** Runs `make` only once per name. */
  once<T>(name: string, make: () => Promise<T>): Promise<T>;
  /** @throws NotChecked when there is no control surface */
  readonly control: Control;
  readonly controlled: boolean;
  /** Moves the service's clock; cached tokens are obtained again. */
  passTime(ms: number): Promise<void>;
  close(): Promise<void>;
}

const REQUEST_MS = 8_000;

export function makeService(options: ServiceOptions): Service {
  const agent = new Agent({ headersTimeout: REQUEST_MS, bodyTimeout: REQUEST_MS });
  const made = new Map<string, Promise<unknown>>();
  const tokens = new Map<string, Promise<unknown>>();
  const control = options.control === undefined ? undefined : makeControl(options.control, agent);
  const service: Service = {
    options,
    async send(host, method, path, sending = {}) {
      const { query, form, json } = sending;
      const search = query ? `?${new URLSearchParams(query)}` : '';
      const text = typeof json === 'object' ? JSON.stringify(json) : json;
      const answer = await request(`${options[host].replace(/\/+$/, '')}${path}${search}`, {
        method: method as 'GET',
        dispatcher: agent,
        headers: await headersOf(service, host, sending),
        body: form ? new URLSearchParams(form).toString() : (text ?? null),
      });
      return replyOf(answer.statusCode, answer.headers, await answer.body.text());
    },
    clientToken: () => cached(tokens, 'client', () => obtainClientToken(service)),
    user: () => cached(tokens, 'user', () => obtainUser(service)),
    once: (name, make) => cached(made, name, make),
    controlled: control !== undefined,
    get control() {
      if (!control) throw new NotChecked('needs --control');
      return control;
    },
    async passTime(ms) {
      await service.control.moveClock(ms);
      tokens.clear();
    },
    close: () => agent.close(),
  };
  return service;
}

function cached<T>(
  map: Map<string, Promise<unknown>>,
  name: string,
  make: () => Promise<T>,
): Promise<T> {
  const found = map.get(name) ?? make();
  map.set(name, found);
  return found as Promise<T>;
}

async function headersOf(service: Service, host: Host, sending: Sending) {
  const { as = host === 'auth' ? 'app' : 'client', form, json } = sending;
  const { key } = service.options;
  const authorization = await authorizationOf(service, as);
  return {
    ...(form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
    ...(json !== undefined ? { 'content-type': 'application/json' } : {}),
    ...(authorization === undefined ? {} : { authorization }),
    ...(key !== undefined && host !== 'auth' && as !== 'anonymous' ? { 'tallyhook-key': key } : {}),
    ...sending.headers,
  };
}

async function authorizationOf(service: Service, as: As): Promise<string | undefined> {
  if (as === 'anonymous') return undefined;
  if (as === 'client') return `Bearer ${await service.clientToken()}`;
  if (as === 'user') return `Bearer ${(await service.user()).access}`;
  if (as === 'app') return `Basic ${basicOf(clientOf(service))}`;
  return 'bearer' in as ? `Bearer ${as.bearer}` : `Basic ${as.basic}`;
}

export interface Client {
  id: string;
  secret: string;
}

/** @throws NotChecked when the options have no client */
export function clientOf({ options }: Service): Client {
  const { clientId: id, clientSecret: secret } = options;
  if (id === undefined || secret === undefined) {
    throw new NotChecked('needs --client-id and --client-secret');
  }
  return { id, secret };
}

/** The base64 encoding of client_id, a colon, and client_secret. */
export function basicOf({ id, secret }: Client): string {
  return Buffer.from(`${id}:${secret}`).toString('base64');
}

async function obtainClientToken(service: Service): Promise<string> {
  const { clientId, key } = service.options;
  // A gateway uses its managed client token for requests with its key.
  if (clientId === undefined && key !== undefined) return key;
  const form = { grant_type: 'client_credentials' };
  const reply = await service.send('auth', 'POST', '/v1/oauth/token', { form });
  return reply.record.text('access_token');
}

async function obtainUser(service: Service): Promise<UserTokens> {
  const { userToken, refreshToken } = service.options;
  if (service.controlled) return logIn(service);
  if (userToken !== undefined) return { access: userToken, refresh: refreshToken };
  throw new NotChecked('needs --control or --user-token');
}
