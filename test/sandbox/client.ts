/** A client of the sandbox over real HTTP, on a clock that the test moves. */
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { type Json, parseJson } from '../../src/kernel/json.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';

export const BASIC = `Basic ${Buffer.from('app:hush').toString('base64')}`;
export const REDIRECT = 'http://127.0.0.1:3000/callback';
export const UNUSED_ADDRESS = `0x${'9'.repeat(40)}`;

/** A response; its body is parsed without loss of digits. */
export interface Reply {
  status: number;
  headers: Headers;
  text: string;
  body: Json | undefined;
  /** A value of the body by its path, such as `data.tx_log_no` or `error.0.field`. */
  at(path: string): Json | undefined;
}

export interface Caller {
  sandbox: Sandbox;
  clock: ManualClock;
  /** Sends a request; `as` is an access token, `form` and `json` are bodies. */
  send(method: string, path: string, options?: SendOptions): Promise<Reply>;
  clientToken(): Promise<string>;
  /** Logs a member in through the login page and exchanges the code. */
  login(memberNo: number): Promise<Reply>;
  /** The wallet address of a member that has one. */
  addressOf(memberNo: number): string;
  balanceOf(addr: string): bigint;
}

interface SendOptions {
  as?: string;
  authorization?: string;
  form?: Record<string, string>;
  json?: string | object;
  headers?: Record<string, string>;
}

const running = new Set<Sandbox>();

/** Starts a sandbox with settle times of 10 s, exactly, on a manual clock. */
export async function startCaller(options: Partial<SandboxOptions> = {}): Promise<Caller> {
  const clock = manualClock();
  const switches = { settle_sigma: 0, ...options.switches };
  const sandbox = await startSandbox({
    seed: 1,
    clientId: 'app',
    clientSecret: 'hush',
    clock,
    settleMs: 10_000,
    ...options,
    switches,
  });
  running.add(sandbox);
  return callerOf(sandbox, clock);
}

/**
 * A sandbox for all tests of a file, reset before each of them, with a new client token in
 * `client`.
 */
export function useCaller(): Caller & { client: string } {
  const shared = {} as Caller & { client: string };
  beforeAll(async () => {
    Object.assign(shared, await startCaller());
  });
  beforeEach(async () => {
    shared.clock.set(Date.UTC(2026, 0, 1));
    shared.sandbox.control.reset({});
    shared.client = await shared.clientToken();
  });
  afterAll(stopAll);
  return shared;
}

/** Stops the sandboxes that the tests started. */
export async function stopAll(): Promise<void> {
  await Promise.all([...running].map((sandbox) => sandbox.close()));
  running.clear();
}

function callerOf(sandbox: Sandbox, clock: ManualClock): Caller {
  const send: Caller['send'] = async (method, path, options = {}) => {
    const headers = new Headers(options.headers);
    if (options.as !== undefined) headers.set('authorization', `Bearer ${options.as}`);
    if (options.authorization) headers.set('authorization', options.authorization);
    if (options.json !== undefined) headers.set('content-type', 'application/json');
    const { form, json } = options;
    const text = typeof json === 'object' ? JSON.stringify(json) : json;
    const body = form ? new URLSearchParams(form) : text;
    const init = { method, headers, redirect: 'manual', ...(body ? { body } : {}) } as const;
    return replyOf(await fetch(sandbox.url + path, init));
  };
  return {
    sandbox,
    clock,
    send,
    async clientToken() {
      const form = { grant_type: 'client_credentials' };
      const reply = await send('POST', '/v1/oauth/token', { authorization: BASIC, form });
      return String(reply.at('access_token'));
    },
    async login(memberNo) {
      const code = await codeFor(send, memberNo);
      const form = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT };
      return send('POST', '/v1/oauth/token', { authorization: BASIC, form });
    },
    addressOf(memberNo) {
      const member = sandbox.control.state().members[memberNo - 1];
      return member?.addr ?? 'none';
    },
    balanceOf: (addr) => sandbox.control.setWallet(addr, {}).balance,
  };
}

/** The authorization code in the redirect after a member's login. */
export async function codeFor(send: Caller['send'], memberNo: number): Promise<string> {
  const form = {
    response_type: 'code',
    client_id: 'app',
    redirect_uri: REDIRECT,
    member_no: String(memberNo),
  };
  const reply = await send('POST', '/v1/oauth/authorize', { form });
  return new URL(reply.headers.get('location') ?? '').searchParams.get('code') ?? '';
}

async function replyOf(response: Response): Promise<Reply> {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  const body = isJson ? parseJson(text) : undefined;
  const at = (path: string) =>
    path.split('.').reduce<Json | undefined>((value, name) => memberOf(value, name), body);
  return { status: response.status, headers: response.headers, text, body, at };
}

function memberOf(value: Json | undefined, name: string): Json | undefined {
  if (Array.isArray(value)) return value[Number(name)];
  return value !== null && typeof value === 'object' ? value[name] : undefined;
}
