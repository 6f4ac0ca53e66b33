import type { Kind, WriteFields } from '../../src/journal/journal.ts';
import { addressKey } from '../../src/kernel/addresses.ts';
import type { FaultInput } from '../../src/sandbox/fault-kinds.ts';
import { runDry } from '../ledger/fixture.ts';
import { DAY_MS, type Plan, type World } from './world.ts';

/** One write as it was asked for; `name` is its reason, by which the service's effect is found. */
export interface Asked {
  name: string;
  id: string;
  kind: Kind;
  fields: WriteFields;
}

const CONTRACT = 1n;

export interface Outside {
  addr: string;
  amount: bigint;
}

/**
 * Runs the story, and then as long as it takes until nothing is open but what people have to
 * decide.
 */
export async function runStory(world: World, { steps }: Plan) {
  const asked: Asked[] = [];
  const outside: Outside[] = [];
  const below = (n: number) => Math.floor(world.chance.unit() * n);
  await passes(world, 4);
  // Wallets that stood still for long are known well enough to be believed alone.
  world.clock.advance(60 * DAY_MS);
  await passes(world, 4);
  for (let step = 0; step < steps; step++) {
    const dice = world.chance.unit();
    if (dice < 0.62) await Promise.all(writesOf(world, asked, below));
    else if (dice < 0.72) outside.push(...changeBehindBack(world, outside, below));
    else if (dice < 0.735) world.sandbox.control.maintenance({ state: 'on', duration_ms: 60_000 });
    else if (dice < 0.78) staleReads(world, below);
    world.clock.advance(20 + below(3_000));
    await passes(world, 1 + below(2));
  }
  for (let round = 0; round < 60; round++) {
    world.clock.advance(round < 40 ? 2_500 : 40_000);
    await passes(world, 3);
  }
  return { asked, outside };
}

/** Some passes of every stage, in which the clock moves a little. */
async function passes(world: World, rounds: number): Promise<void> {
  const { clock, journal, ledger, observer, reconciler } = world;
  for (let round = 0; round < rounds; round++) {
    await observer.probeOnce(clock.now());
    for (let looks = 1, turn = 0; looks > 0 && turn < 12; turn++) {
      clock.advance(3);
      looks = (await observer.runOnce(clock.now())).looks;
    }
    if (world.chance.unit() < 0.7) await runDry(ledger, clock);
    await reconciler.runOnce(clock.now());
    await journal.runOnce(clock.now());
  }
}

/** One to three writes at once, each with its own fate, while looks go on beside them. */
function writesOf(world: World, asked: Asked[], below: (n: number) => number): Promise<unknown>[] {
  const many = 1 + (below(4) === 0 ? below(3) : 0);
  const writes = Array.from({ length: many }, () => oneWrite(world, asked, below));
  return below(2) === 0 ? writes : [...writes, world.observer.runOnce(world.clock.now())];
}

async function oneWrite(world: World, asked: Asked[], below: (n: number) => number): Promise<void> {
  const { clock, journal, upstream, sandbox } = world;
  const name = `r${asked.length}x`;
  const entry: Asked = { name, id: '', ...wishOf(world, asked, below) };
  asked.push(entry);
  const request = requestOf(entry);
  const fault = FAULTS[below(FAULTS.length + world.unharmed)];
  if (fault) sandbox.control.addFault({ ...fault, contains: name });
  const deadlineAt = clock.now() + 5_000;
  const recorded = await journal.record({
    ...{ kind: entry.kind, owner: 'app', keyId: 'key', idempotencyKey: null, fingerprint: 'f' },
    ...{ reference: name, method: 'POST', path: request.path, contentType: request.type },
    ...{ body: request.body, fields: entry.fields, preImage: null, sendWithinMs: 5_000 },
    ...{ expiresAt: null, queue: false, dayLimit: null },
  });
  entry.id = 'id' in recorded ? recorded.id : '';
  const { outcome, endedAt } = await upstream.forward({
    ...{ method: 'POST', path: request.path, host: request.host, body: request.body, deadlineAt },
    headers: [['content-type', request.type]],
    authorization: { managed: true },
    family: request.host === 'tx' ? 'transaction' : 'nft',
  });
  await journal.conclude({ operationId: entry.id, outcome, answer: undefined, endedAt });
}

/** What may happen to a write; the plan says how many fare well beside them. */
const FAULTS: FaultInput[] = [
  { kind: 'lost_answer' },
  { kind: 'lost_answer', reset: true },
  { kind: 'truncated' },
  { kind: 'garbled' },
  { kind: 'dropped' },
  { kind: 'dropped', reset: true },
  { kind: 'late', delay_ms: 900 },
  { kind: 'late', delay_ms: 20_000 },
  { kind: 'late', delay_ms: 33_000 },
  { kind: 'error', code: '999', applied: true },
  { kind: 'error', code: '999' },
  { kind: 'status', status: 502, applied: true },
];

function wishOf(
  { users, amountMax }: World,
  asked: readonly Asked[],
  below: (n: number) => number,
): Pick<Asked, 'kind' | 'fields'> {
  const user = () => users[below(users.length)] ?? '';
  const amount = BigInt(1 + below(amountMax));
  const feeAmount = BigInt(below(3));
  const dice = below(10);
  if (dice < 3) return { kind: 'give', fields: { operationNo: 1n, toAddr: user(), amount } };
  if (dice < 5) return { kind: 'receive_from', fields: { fromAddr: user(), amount, feeAmount } };
  if (dice < 8) {
    const fromAddr = user();
    const toAddr = users.find((addr, i) => addr !== fromAddr && i >= below(users.length)) ?? '';
    return {
      kind: 'transfer',
      fields: { fromAddr, toAddr: toAddr || fromAddr, amount, feeAmount },
    };
  }
  const minted = asked.filter(({ kind }) => kind === 'mint');
  const burnt = minted.find(
    ({ fields }) => !asked.some((o) => o.kind === 'burn' && o.fields.tokenId === fields.tokenId),
  );
  if (dice === 8 && burnt && minted.length > 4)
    return { kind: 'burn', fields: { contractId: CONTRACT, tokenId: burnt.fields.tokenId ?? 0n } };
  const tokenId = 1_000n + BigInt(asked.length);
  return {
    kind: 'mint',
    fields: { contractId: CONTRACT, tokenId, toAddr: user(), tokenUri: `ipfs://${tokenId}` },
  };
}

function requestOf({ name, kind, fields }: Asked) {
  const { operationNo, fromAddr, toAddr, amount, feeAmount, tokenId, tokenUri } = fields;
  if (kind === 'mint' || kind === 'burn') {
    const form = new URLSearchParams({ tokenId: String(tokenId), metaData: `{"name":"${name}"}` });
    if (kind === 'mint') {
      form.set('toAddr', toAddr ?? '');
      form.set('tokenURI', tokenUri ?? '');
    }
    const path = `/v1/chain/erc721/${CONTRACT}/${kind}`;
    const type = 'application/x-www-form-urlencoded';
    return { path, host: 'base', type, body: Buffer.from(form.toString()) } as const;
  }
  const path = {
    give: `/v1/app/token/operations/${operationNo}/give`,
    receive_from: '/v1/app/token/operations/receive-from',
    transfer: '/v1/app/token/accounts/transfer',
  }[kind as 'give' | 'receive_from' | 'transfer'];
  const body = JSON.stringify({
    ...(fromAddr ? { fromAddr } : {}),
    ...(toAddr ? { toAddr } : {}),
    amount: Number(amount),
    ...(kind === 'give' ? {} : { feeAmount: Number(feeAmount) }),
    reasonType: name,
  });
  return { path, host: 'tx', type: 'application/json', body: Buffer.from(body) } as const;
}

/** A change that no sum of writes can be taken for, or one of them taken back. */
function changeBehindBack(
  { sandbox, users }: World,
  before: readonly Outside[],
  below: (n: number) => number,
): Outside[] {
  const back = below(3) === 0 ? before[below(before.length)] : undefined;
  const addr = back?.addr ?? users[below(users.length)] ?? '';
  const amount = back
    ? -back.amount
    : 100_000n * BigInt(1 + below(9)) * (below(3) === 0 ? -1n : 1n);
  // A wallet that could not pay would refuse our own writes.
  const balance = sandbox.world.wallets.get(addressKey(addr))?.balance ?? 0n;
  if (balance + amount < 2_000n) return [];
  sandbox.control.setWallet(addr, { delta: amount });
  return [{ addr, amount }];
}

/** The next reads show things as they were a while ago, within the read lag that is assumed. */
function staleReads({ sandbox }: World, below: (n: number) => number): void {
  sandbox.control.addFault({
    ...{ kind: 'stale_list', age_ms: 100 + below(890), count: 3, method: 'GET' },
    path: '/v1/app/token/account',
  });
}
