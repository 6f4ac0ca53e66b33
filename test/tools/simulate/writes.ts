/** The writes of a simulation, and the faults that happen to them. */
import { fieldsOf, type Request, routeOf } from '../../../src/gateway/routes.ts';
import { runWrite, type WriteInput } from '../../../src/gateway/writes.ts';
import { addressKey } from '../../../src/kernel/addresses.ts';
import { jsonText } from '../../../src/kernel/json.ts';
import type { Kind, WriteFields } from '../../../src/operations/operations.ts';
import { maintenanceStatus } from '../../../src/sandbox/endpoints/maintenance.ts';
import type { FaultInput } from '../../../src/sandbox/faults/kinds.ts';
import type { ForwardRequest } from '../../../src/upstream/upstream.ts';
import { lostAnswers } from '../../harness/lost-answers.ts';
import { CONTRACT, drawsOf, rarity, type SimDaemon, singleAddr, type World } from './world.ts';

/** `name` is in the query of the request, by which the service's log finds it. */
export interface RequestedWrite {
  name: string;
  kind: Kind;
  fields: WriteFields;
}

/** Where the daemon dies, or its machine is suspended, with a write under way. */
export type Crash = 'before_send' | 'before_conclude' | { suspendedMs: number };

const FAULTS: FaultInput[] = [
  ...lostAnswers(900, 9_000, 33_000),
  { kind: 'throttle', retry_after: 'seconds', retry_after_s: 1 },
];

/** Starts one write; its outcome is read from the operations at the end. */
export function requestWrite(world: World, requested: RequestedWrite[], crash?: Crash): void {
  const { sandbox, plan, time } = world;
  const n = world.draws++;
  const random = drawsOf(plan, 'write', n);
  // Drawn first, since the number of draws of the search for a token varies.
  const drawn = FAULTS[Math.floor(random.unit() * FAULTS.length * (1 + plan.unharmed))];
  // Each halves the rate of polls for minutes, so they are as rare in time at any pace.
  const isRare = drawn?.kind === 'throttle' && random.unit() >= rarity(plan);
  const fault = isRare ? undefined : drawn;
  const awake = world.daemons.filter(({ machine }) => !machine?.isSuspended());
  const daemon = awake[Math.floor(random.unit() * awake.length)];
  const draw = drawWrite({ ...world, random, serial: () => `s${n}` });
  if (!draw || !daemon) return;
  const entry = { name: `r${n}x`, ...draw };
  requested.push(entry);
  if (fault && !crash) sandbox.control.addFault({ ...fault, contains: `sim=${entry.name}` });
  else if (plan.faults.includes('answers') && isAppless(entry, plan, n)) {
    world.appless.add(entry.name);
    sandbox.control.addFault({ ...NO_APP_NO, contains: `sim=${entry.name}` });
  }
  time.run(send(world, daemon, entry, crash));
}

const NO_APP_NO = { kind: 'without', member: 'tx_app_no' } as const;
/** One in eight token writes. */
const APPLESS_SHARE = 0.125;

function isAppless({ fields }: RequestedWrite, plan: World['plan'], n: number): boolean {
  return fields.amount != null && drawsOf(plan, 'answer', n).unit() < APPLESS_SHARE;
}

async function send(
  world: World,
  daemon: SimDaemon,
  entry: RequestedWrite,
  crash?: Crash,
): Promise<void> {
  const { clock } = world;
  const blocked = daemon.upstream.blockedUntil('app-write') ?? 0;
  if (blocked > clock.now()) return;
  const write = incomingOf(world, entry);
  const deps = crash ? dying(daemon, crash, world) : daemon.write;
  await runWrite(deps, write).catch(() => {});
}

/** The same daemon, which stops at some point as if it was killed, or goes on only later. */
function dying(daemon: SimDaemon, crash: Crash, { time }: World): SimDaemon['write'] {
  const { write, machine } = daemon;
  const forward = async (request: ForwardRequest) => {
    if (typeof crash === 'object') {
      machine?.suspend();
      await time.pause(crash.suspendedMs);
      machine?.wake();
      return write.upstream.forward(request);
    }
    if (crash === 'before_conclude') await write.upstream.forward(request);
    await time.pause(Number.MAX_SAFE_INTEGER);
    throw new Error('dead');
  };
  return { ...write, upstream: { ...write.upstream, forward } };
}

function incomingOf(world: World, entry: RequestedWrite): WriteInput {
  const request = requestOf(entry);
  const route = routeOf(request.method, request.path);
  if (route.type !== 'write') throw new Error(`no write: ${request.path}`);
  const own = ['set_extra_data', 'transfer_from'].includes(entry.kind);
  const token = world.tokens.get(entry.fields.fromAddr ?? '');
  return {
    request,
    route: { ...route, fields: fieldsOf(request) },
    caller: { owner: 'app', keyId: 'key', scopes: ['gateway'] },
    idempotencyKey: undefined,
    reference: entry.name,
    ownToken: own ? `Bearer ${token}` : undefined,
  };
}

type DrawnWrite = Omit<RequestedWrite, 'name'>;

function drawWrite(world: World): DrawnWrite | undefined {
  const dice = Math.floor(world.random.unit() * 100);
  if (dice < 64) return drawTokenWrite(world, dice);
  return dice < 82 ? drawMint(world, dice < 70) : drawNftWrite(world, dice);
}

const PRICES = [1n, 5n, 10n, 50n, 100n, 500n];

function drawTokenWrite(world: World, dice: number): DrawnWrite | undefined {
  const { random, plan } = world;
  if (plan.fresh && isDown(world)) return undefined;
  const below = (n: number) => Math.floor(random.unit() * n);
  const user = () => drawWallet(world);
  const amount = below(3) === 0 ? (PRICES[below(PRICES.length)] ?? 1n) : BigInt(1 + below(5_000));
  const feeAmount = BigInt(below(plan.mapped ? 3 : 2));
  if (dice < 22) return { kind: 'give', fields: { operationNo: 1n, toAddr: user(), amount } };
  if (dice < 38) return { kind: 'receive_from', fields: { fromAddr: user(), amount, feeAmount } };
  return { kind: 'transfer', fields: { ...drawPair(world), amount, feeAmount } };
}

/** Apps learn of a new wallet from the service, so none is named while it answers nothing. */
function isDown({ sandbox, relay }: World): boolean {
  const failsAll = sandbox.control
    .faults()
    .some(({ left, fault }) => left > 0 && fault.kind === 'status' && failsWallets(fault));
  return relay.isDown() || failsAll || maintenanceStatus(sandbox.world) === 'INACTIVE';
}

const WALLETS = [undefined, '/v1/*', '/v1/app/token/account'];

function failsWallets({ contains, endpoint, path }: FaultInput): boolean {
  return contains === undefined && endpoint === undefined && WALLETS.includes(path);
}

/** Any wallet; with `busy` the n-th is chosen n times less often than the first. */
function drawWallet({ random, users, singles, plan }: World): string {
  if (plan.fresh) {
    const addr = singleAddr(plan, singles.length);
    singles.push(addr);
    return addr;
  }
  // The share of the first n wallets is about ln(n + 1) of ln(all + 1).
  const at = plan.busy ? (users.length + 1) ** random.unit() - 1 : random.unit() * users.length;
  return users[Math.floor(at)] ?? '';
}

function drawPair(world: World): { fromAddr: string; toAddr: string } {
  const { random, users, plan } = world;
  if (plan.fresh || plan.busy) {
    const fromAddr = drawWallet(world);
    let toAddr = drawWallet(world);
    while (toAddr === fromAddr) toAddr = drawWallet(world);
    return { fromAddr, toAddr };
  }
  const below = (n: number) => Math.floor(random.unit() * n);
  const from = below(users.length);
  const to = (from + 1 + below(users.length - 1)) % users.length;
  return { fromAddr: users[from] ?? '', toAddr: users[to] ?? '' };
}

/** Half of the tokens are of a kind of their own, half of a few kinds that are made again. */
function drawMint(world: World, chosen: boolean): DrawnWrite {
  const { random, users, plan } = world;
  const below = (n: number) => Math.floor(random.unit() * n);
  const toAddr = users[below(plan.members)] ?? '';
  const serial = world.serial();
  const kind = below(2) === 0 ? `edition-${below(6)}` : serial;
  const extraData = below(2) === 0 ? null : jsonText({ level: below(3) });
  const fields = { contractId: CONTRACT, toAddr, tokenUri: `ipfs://${kind}`, extraData };
  if (!chosen)
    return { kind: 'mint_sequential', fields: { ...fields, metaData: jsonText({ name: kind }) } };
  const tokenId = 1_000_000n + BigInt(below(1_000_000_000));
  return { kind: 'mint', fields: { ...fields, tokenId, metaData: jsonText({ name: serial }) } };
}

/** A write on a token that the app found in the list: as a rule one that is not being processed. */
function drawNftWrite(world: World, dice: number): DrawnWrite | undefined {
  const { random, sandbox, users, plan, serial } = world;
  const below = (n: number) => Math.floor(random.unit() * n);
  const members = new Set(users.slice(0, plan.members).map(addressKey));
  const all = [...sandbox.world.tokens.values()];
  const fit = (): (typeof all)[number] | undefined => {
    for (let i = 0; i < 20; i++) {
      const token = all[below(all.length)];
      if (token?.exists && (!token.work || i > 15) && members.has(addressKey(token.owner)))
        return token;
    }
    return undefined;
  };
  const token = fit();
  if (!token) return undefined;
  const fromAddr = users.find((addr) => addressKey(addr) === addressKey(token.owner)) ?? '';
  const named = { contractId: CONTRACT, tokenId: token.token_id };
  if (dice < 86) return { kind: 'burn', fields: named };
  if (dice < 93) {
    const toAddr = users[below(plan.members)] ?? '';
    return { kind: 'transfer_from', fields: { ...named, fromAddr, toAddr } };
  }
  const extraData = jsonText({ level: below(3), note: below(2) === 0 ? 'x' : serial() });
  return { kind: 'set_extra_data', fields: { ...named, fromAddr, extraData } };
}

function requestOf({ name, kind, fields }: RequestedWrite): Request {
  const { operationNo, fromAddr, toAddr, amount, feeAmount } = fields;
  const common = (contentType: string) => ({
    query: `?sim=${name}`,
    contentType,
    headers: [['content-type', contentType] as [string, string]],
  });
  const tokenPath = {
    give: `/v1/app/token/operations/${operationNo}/give`,
    receive_from: '/v1/app/token/operations/receive-from',
    transfer: '/v1/app/token/accounts/transfer',
  }[kind as string];
  if (tokenPath) {
    const body = jsonText({
      ...(fromAddr ? { fromAddr } : {}),
      ...(toAddr ? { toAddr } : {}),
      amount,
      ...(kind === 'give' ? {} : { feeAmount }),
      reasonType: name,
    });
    return {
      ...common('application/json'),
      method: 'POST',
      path: tokenPath,
      body: Buffer.from(body),
    };
  }
  const base = `/v1/chain/erc721/${fields.contractId}`;
  const form = new URLSearchParams();
  const put = (key: string, value: unknown) => {
    if (value !== null && value !== undefined) form.set(key, String(value));
  };
  if (kind !== 'set_extra_data') put('tokenId', fields.tokenId);
  if (kind === 'transfer_from') put('fromAddr', fromAddr);
  put('toAddr', toAddr);
  put('tokenURI', fields.tokenUri);
  put('metaData', fields.metaData);
  put('extraData', fields.extraData);
  const path = {
    mint: `${base}/mint`,
    mint_sequential: `${base}/mint-sequential`,
    burn: `${base}/burn`,
    transfer_from: `${base}/transfer-from`,
    set_extra_data: `${base}/tokens/${fields.tokenId}/set-extra-data`,
  }[kind as string];
  return {
    ...common('application/x-www-form-urlencoded'),
    method: kind === 'set_extra_data' ? 'PUT' : 'POST',
    path: path ?? base,
    body: Buffer.from(form.toString()),
  };
}
