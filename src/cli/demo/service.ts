/**
 * The service of the demo: the one of the environment, or a sandbox. Each of its hosts is behind a
 * proxy. Contract, operator and wallets come from the options or are looked up.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import type { ServiceAddress } from '../../daemon/daemon.ts';
import { systemClock } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { type Json, parseJson } from '../../kernel/json.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';

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
  const own = sandbox?.url ?? '';
  const real = service ?? { baseUrl: own, authUrl: own, txUrl: own, ...credentials };
  const proxies = new Map<string, DemoProxy>();
  for (const url of new Set([real.baseUrl, real.authUrl, real.txUrl])) {
    proxies.set(url, await startProxy(url));
  }
  const behind = (url: string) => proxies.get(url)?.url ?? url;
  const token = await clientToken(real);
  const targets = await findTargets(real, token, options, sandbox);
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

interface TokenPage {
  data?: { data?: { token_owner?: string; token_creator?: string }[] };
}

interface Account {
  data?: { status?: number };
}

async function send<Answer = Json>(
  method: 'GET' | 'POST',
  url: string,
  token: string,
  body?: Json,
): Promise<Answer> {
  const answer = await request(url, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
    headersTimeout: 10_000,
  });
  return parseJson(await answer.body.text()) as Answer;
}

async function findTargets(
  service: ServiceAddress,
  token: string,
  options: DemoOptions,
  sandbox: Sandbox | undefined,
): Promise<DemoTargets> {
  const given = options.wallet?.flatMap((text) => text.split(',')) ?? [];
  const [payer, second] = given.length > 0 || !sandbox ? given : activeWallets(sandbox);
  if (!payer)
    throw new Failure(
      'bad_setting',
      'a wallet of the service is required: --wallet <address> [<address>]',
    );
  const contract = options.contract ?? '1';
  const payee = second ?? (await otherWallet(service, token, contract, payer)) ?? payer;
  return { contract, operator: options.operator ?? '1', payer, payee };
}

function activeWallets({ control }: Sandbox): string[] {
  return control.state().wallets.flatMap(({ addr, status }) => (status === 1 ? [addr] : []));
}

/** A second wallet: that of an owner or creator of a token. */
async function otherWallet(
  service: ServiceAddress,
  token: string,
  contract: string,
  not: string,
): Promise<string | undefined> {
  const page = await send<TokenPage>(
    'GET',
    `${service.baseUrl}/v1/chain/erc721/${contract}/tokens`,
    token,
  );
  const addrs = new Set(
    page.data?.data?.flatMap((t) => [t.token_owner ?? '', t.token_creator ?? '']),
  );
  for (const addr of [...addrs].filter((a) => a.length === 42 && a !== not).slice(0, 10)) {
    const path = `/v1/app/token/account?addr=${addr}`;
    const found = await send<Account>('GET', `${service.baseUrl}${path}`, token);
    if (found.data?.status === 1) return addr;
  }
  return undefined;
}

interface DemoProxy {
  url: string;
  /** Loses the response to the next write. */
  loseNextAnswer(): void;
  close(): Promise<void>;
}

/**
 * A loopback proxy that can lose one answer: it forwards the request and closes the connection
 * instead of returning the response.
 * @param target the service's origin, with a path before /v1 if it has one
 */
async function startProxy(target: string): Promise<DemoProxy> {
  let lose = false;
  const server = createServer((incoming, outgoing) => {
    relay(target, incoming, outgoing, () => {
      const now = lose && incoming.method !== 'GET';
      if (now) lose = false;
      return now;
    }).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    loseNextAnswer() {
      lose = true;
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function relay(
  target: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  loseThis: () => boolean,
): Promise<void> {
  const {
    host: _host,
    connection: _connection,
    'transfer-encoding': _te,
    ...headers
  } = incoming.headers;
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
  const answer = await request(`${target}${incoming.url}`, {
    method: (incoming.method ?? 'GET') as 'GET',
    headers,
    body: chunks.length > 0 ? Buffer.concat(chunks) : null,
    headersTimeout: 30_000,
    bodyTimeout: 30_000,
  });
  const body = Buffer.from(await answer.body.arrayBuffer());
  if (loseThis()) {
    outgoing.destroy();
    return;
  }
  const { connection: _c, 'transfer-encoding': _t, 'keep-alive': _k, ...passed } = answer.headers;
  outgoing.writeHead(answer.statusCode, { ...passed, 'content-length': body.length });
  outgoing.end(body);
}
