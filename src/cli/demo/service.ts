/**
 * The service of the demo: the one of the environment, or a sandbox. Each of its hosts is behind a
 * proxy. Contract, operator and wallets come from the options or are looked up.
 */
import { request } from 'undici';
import type { ServiceAddress } from '../../daemon/daemon.ts';
import { systemClock } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { type Json, parseJson } from '../../kernel/json.ts';
import { startSandbox } from '../../sandbox/sandbox.ts';
import { type DemoProxy, startProxy } from './proxy.ts';

export interface DemoOptions {
  contract?: string;
  operator?: string;
  /** One or two wallet addresses. */
  wallet?: string[];
}

interface DemoTargets {
  contract: string;
  operator: string;
  /** Pays in the transfers. */
  payer: string;
  /** The payer itself if no second wallet is known; payments are then deductions from it. */
  payee: string;
}

export interface DemoService {
  /** For the daemon: the addresses of the proxies. */
  address: ServiceAddress;
  targets: DemoTargets;
  description: string;
  loseNextAnswer(): void;
  /** A write with the client's credentials that bypasses the daemon. */
  sendDirectly(path: string, body: Json): Promise<Json>;
  close(): Promise<void>;
}

/** @param service the service of the environment; undefined: a sandbox is started */
export async function openDemoService(
  service: ServiceAddress | undefined,
  options: DemoOptions,
): Promise<DemoService> {
  const credentials = { clientId: 'sandbox-client', clientSecret: 'sandbox-secret' };
  const sandbox = service
    ? undefined
    : await startSandbox({ ...credentials, seed: 7, clock: systemClock, settleMs: 1_500 });
  const real: ServiceAddress = service ?? {
    baseUrl: sandbox?.url ?? '',
    authUrl: sandbox?.url ?? '',
    txUrl: sandbox?.url ?? '',
    ...credentials,
  };
  const proxies = new Map<string, DemoProxy>();
  for (const url of new Set([real.baseUrl, real.authUrl, real.txUrl])) {
    proxies.set(url, await startProxy(url));
  }
  const behind = (url: string) => proxies.get(url)?.url ?? url;
  const token = await clientToken(real);
  const targets = await findTargets(real, token, options, sandbox?.url);
  return {
    address: {
      ...real,
      baseUrl: behind(real.baseUrl),
      authUrl: behind(real.authUrl),
      txUrl: behind(real.txUrl),
    },
    targets,
    description: sandbox ? 'a sandbox of its own' : real.baseUrl,
    loseNextAnswer: () => proxies.get(real.txUrl)?.loseNextAnswer(),
    sendDirectly: (path, body) => send('POST', `${real.txUrl}${path}`, token, body),
    async close() {
      await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
      await sandbox?.close();
    },
  };
}

async function clientToken(service: ServiceAddress): Promise<string> {
  const { clientId, clientSecret } = service;
  const answer = await request(`${service.authUrl}/v1/oauth/token`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: 'grant_type=client_credentials',
    headersTimeout: 10_000,
  });
  const body = parseJson(await answer.body.text()) as Record<string, Json>;
  const data = (body.data ?? body) as Record<string, Json>;
  if (typeof data.access_token === 'string') return data.access_token;
  throw new Failure(
    'bad_setting',
    'the service gave no client token; check UPSTREAM_CLIENT_ID and UPSTREAM_CLIENT_SECRET',
  );
}

async function send(
  method: 'GET' | 'POST',
  url: string,
  token: string,
  body?: Json,
): Promise<Json> {
  const answer = await request(url, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
    headersTimeout: 10_000,
  });
  return parseJson(await answer.body.text());
}

async function findTargets(
  service: ServiceAddress,
  token: string,
  options: DemoOptions,
  sandboxUrl: string | undefined,
): Promise<DemoTargets> {
  const given = options.wallet?.flatMap((text) => text.split(',')) ?? [];
  const wallets = given.length > 0 || !sandboxUrl ? given : await sandboxWallets(sandboxUrl);
  const [payer, second] = wallets;
  if (!payer)
    throw new Failure(
      'bad_setting',
      'a wallet of the service is required: --wallet <address> [<address>]',
    );
  const contract = options.contract ?? '1';
  const payee = second ?? (await otherWallet(service, token, contract, payer)) ?? payer;
  return { contract, operator: options.operator ?? '1', payer, payee };
}

/** The first two active wallets of the sandbox. */
async function sandboxWallets(url: string): Promise<string[]> {
  const state = (await send('GET', `${url}/_sandbox/state`, '')) as {
    wallets?: { addr?: string; token_addr?: string; status?: number; amt_token?: string }[];
  };
  const good = (state.wallets ?? []).filter((wallet) => wallet.status === 1);
  return good.flatMap((wallet) => wallet.addr ?? wallet.token_addr ?? []).slice(0, 2);
}

/** A second wallet: that of an owner or creator of a token. */
async function otherWallet(
  service: ServiceAddress,
  token: string,
  contract: string,
  not: string,
): Promise<string | undefined> {
  const page = (await send(
    'GET',
    `${service.baseUrl}/v1/chain/erc721/${contract}/tokens`,
    token,
  )) as {
    data?: { data?: { token_owner?: string; token_creator?: string }[] };
  };
  const addrs = new Set(
    page.data?.data?.flatMap((t) => [t.token_owner ?? '', t.token_creator ?? '']),
  );
  for (const addr of [...addrs].filter((a) => a.length === 42 && a !== not).slice(0, 10)) {
    const found = (await send(
      'GET',
      `${service.baseUrl}/v1/app/token/account?addr=${addr}`,
      token,
    )) as {
      data?: { status?: number };
    };
    if (found.data?.status === 1) return addr;
  }
  return undefined;
}
