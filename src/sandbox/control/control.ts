/**
 * Changes of the world by tests and operators, past the service's own endpoints. Like a request,
 * each one first advances time and then commits to the store.
 */
import { z } from 'zod';
import { ADDRESS_LENGTH, addressKey, isAddress } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { scheduleBackgroundTraffic } from '../chain/background-traffic.ts';
import { nextHash, resumeChain } from '../chain/chain.ts';
import { ROUTES } from '../endpoints/routes.ts';
import { type Fault, type FaultInput, type FaultRow, faultSchema } from '../faults/kinds.ts';
import {
  type Effect,
  type Member,
  newToken,
  type Settings,
  STATUS,
  type Token,
  tokenKey,
  tokenStatusSchema,
  WALLET_STATUS,
  type Wallet,
  walletStatusSchema,
} from '../state/records.ts';
import type { Received, RequestLog } from '../state/request-log.ts';
import { insertSeedData } from '../state/seed-data.ts';
import { type Switches, switchesSchema, switchPatchSchema, whole } from '../state/switches.ts';
import { putWallet } from '../state/wallets.ts';
import type { World } from '../world.ts';

const text = z.string().max(10_000);
const duration = z.int().min(0).max(1e12);
const address = z.string().length(ADDRESS_LENGTH);

export const walletChangeSchema = z.strictObject({
  /** The new balance. */
  amt_token: whole.optional(),
  /** Added to the balance; may be negative. */
  delta: whole.optional(),
  status: walletStatusSchema.optional(),
});

export const tokenChangeSchema = z.strictObject({
  owner: address.optional(),
  extra: text.optional(),
  uri: text.optional(),
  metadata: text.optional(),
  locked: z.boolean().optional(),
  status: tokenStatusSchema.optional(),
  last_tx_hash: z.string().length(66).optional(),
});

export const failNextSchema = z.strictObject({ count: z.int().min(0).max(1e6).default(1) });

const lasting = { duration_ms: duration.optional(), message: text.optional() };
export const maintenanceSchema = z.discriminatedUnion('state', [
  z.strictObject({ state: z.literal('off') }),
  z.strictObject({ state: z.literal('on'), ...lasting }),
  z.strictObject({ state: z.literal('announced'), start_in_ms: duration, ...lasting }),
]);

export const clockSchema = z.union([
  z.strictObject({ advance_ms: duration }),
  z.strictObject({ now: z.iso.datetime({ offset: true }) }),
]);

export const resetSchema = z.strictObject({
  seed: z.int().min(0).max(0xffffffff).optional(),
  switches: switchPatchSchema.optional(),
});

export const memberSchema = z.strictObject({
  nickname: z.string().min(1).max(100),
  /** Without it, the member's first own read creates a wallet. */
  addr: address.optional(),
});

export const redirectSchema = z.strictObject({ uri: z.url().max(2000) });

type WalletChange = z.output<typeof walletChangeSchema>;
type TokenChange = z.output<typeof tokenChangeSchema>;
type MaintenanceChange = z.output<typeof maintenanceSchema>;
type ClockMove = z.output<typeof clockSchema>;
type ResetInput = z.output<typeof resetSchema>;
type MemberInput = z.output<typeof memberSchema>;

/** The most faults that are stored; the oldest are deleted first. */
const FAULTS_KEPT = 1000;
/** The most wallets and tokens in the state. */
const ROWS_SHOWN = 1000;
/** Timestamps have four digits for the year. */
const LAST_INSTANT = Date.UTC(9999, 0, 1);
const ENDPOINTS = new Set(['absent', ...ROUTES.map(({ name }) => name)]);

export type Control = ReturnType<typeof makeControl>;

export function makeControl(world: World, requests: RequestLog) {
  const act =
    <A extends unknown[], R>(change: (...args: A) => R) =>
    (...args: A): R => {
      world.advance();
      try {
        return change(...args);
      } finally {
        world.commit();
      }
    };
  return {
    state: act(() => stateOf(world, requests)),
    /** Requests received, oldest first: the newest, or the first after number `after`. */
    requests: act((after?: number, limit?: number): Received[] =>
      requests.list(after, limit ?? 1000),
    ),
    /** Applied writes after number `after`, oldest first. */
    effects: act((after?: bigint, limit?: number): Effect[] =>
      [...world.effects.values()]
        .filter((effect) => effect.n > (after ?? 0n))
        .slice(0, limit ?? 1000),
    ),
    setWallet: act((addr: string, change: WalletChange) => setWallet(world, addr, change)),
    setToken: act((contractId: bigint, tokenId: bigint, change: TokenChange) =>
      setToken(world, contractId, tokenId, change),
    ),
    removeToken: act((contractId: bigint, tokenId: bigint) =>
      world.tokens.delete(tokenKey(contractId, tokenId)),
    ),
    /** Makes the next chain writes fail. */
    failNext: act((count: number) => world.change({ fail_next: count })),
    addMember: act((input: MemberInput) => addMember(world, input)),
    addRedirectUri: act((uri: string) => addRedirectUri(world, uri)),
    maintenance: act((change: MaintenanceChange) => setMaintenance(world, change)),
    addFault: act((fault: FaultInput) => addFault(world, faultSchema.parse(fault))),
    faults: (): FaultRow[] => [...world.faults.values()],
    clearFaults: act(() => {
      for (const key of [...world.faults.keys()]) world.faults.delete(key);
    }),
    moveClock: act((move: ClockMove) => moveClock(world, move)),
    setSwitches: act((patch: Partial<Switches>) => {
      const switches = switchesSchema.parse({ ...world.switches(), ...patch });
      world.change({ switches });
      scheduleBackgroundTraffic(world);
      return switches;
    }),
    reset: act((input: ResetInput) => reset(world, requests, input)),
  };
}

function stateOf(world: World, requests: RequestLog) {
  const { seed, offset_ms, window, redirect_uris, fail_next, switches } = world.settings();
  const { app_no, name, client_id } = world.app;
  return {
    app: { app_no, name, client_id },
    seed,
    now: world.now(),
    offset_ms,
    maintenance: window,
    redirect_uris,
    fail_next,
    switches,
    contracts: [...world.contracts.values()],
    operators: [...world.operators.values()].map((operator) => ({
      ...operator,
      balance: world.wallets.get(addressKey(operator.addr))?.balance ?? 0n,
    })),
    members: [...world.members.values()],
    wallets: [...world.wallets.values()].slice(0, ROWS_SHOWN),
    tokens: [...world.tokens.values()].slice(0, ROWS_SHOWN),
    faults: [...world.faults.values()],
    counts: {
      wallets: world.wallets.size(),
      tokens: world.tokens.size(),
      effects: world.effectsApplied(),
      requests: requests.total(),
    },
  };
}

/** @throws Failure `invalid_request` for a malformed address */
function setWallet(world: World, addr: string, change: WalletChange): Wallet {
  if (!isAddress(addr)) throw new Failure('invalid_request', 'addr: expected 42 characters');
  const found = world.wallets.get(addressKey(addr));
  const wallet = found ?? { addr, balance: 0n, status: WALLET_STATUS.normal };
  return putWallet(world, {
    ...wallet,
    balance: (change.amt_token ?? wallet.balance) + (change.delta ?? 0n),
    status: change.status ?? wallet.status,
  });
}

/**
 * Changes a token, or creates a complete one. A new owner or new extra data is a chain write and
 * gets a new hash; a status or a lock does not.
 * @throws Failure `not_found` for an unknown contract
 */
function setToken(world: World, contractId: bigint, id: bigint, change: TokenChange): Token {
  const contract = world.contracts.get(contractId.toString());
  if (!contract) throw new Failure('not_found', 'contract_id: no such contract');
  const key = tokenKey(contractId, id);
  const now = world.now();
  const found = world.tokens.get(key);
  const token = found ?? newToken(contract, id, now, {});
  const { owner, extra, locked, status, uri, metadata } = change;
  const onChain = !found || owner !== undefined || extra !== undefined;
  const next: Token = {
    ...token,
    owner: owner ?? token.owner,
    owned_at: owner === undefined ? token.owned_at : now,
    extra: extra ?? token.extra,
    uri: uri ?? token.uri,
    metadata: metadata ?? token.metadata,
    locked: locked ?? token.locked,
    status: status ?? token.status,
    exists: token.exists || status === STATUS.complete,
    last_tx_hash: change.last_tx_hash ?? (onChain ? nextHash(world) : token.last_tx_hash),
    work: status === undefined && !onChain ? token.work : null,
  };
  // The change replaces an unsettled write, so the token cannot remain in processing.
  if (onChain && status === undefined) next.status = STATUS.complete;
  world.tokens.put(key, next);
  return next;
}

/** Members are never deleted, so their count gives the next number. */
function addMember(world: World, { nickname, addr }: MemberInput): Member {
  const member_no = BigInt(world.members.size()) + 1n;
  const member: Member = { member_no, nickname, addr: addr ?? null };
  if (addr !== undefined) setWallet(world, addr, {});
  world.members.put(member_no.toString(), member);
  return member;
}

function addRedirectUri(world: World, uri: string): string[] {
  const redirect_uris = [...new Set([...world.settings().redirect_uris, uri])];
  world.change({ redirect_uris });
  return redirect_uris;
}

function setMaintenance(world: World, change: MaintenanceChange): Settings['window'] {
  const now = world.now();
  const message = 'message' in change ? (change.message ?? null) : null;
  const start = change.state === 'announced' ? now + change.start_in_ms : now;
  const lasts = change.state === 'off' ? undefined : change.duration_ms;
  const end = lasts === undefined ? null : start + lasts;
  const window = change.state === 'off' ? null : { start, end, message };
  world.change({ window });
  return window;
}

/** @throws Failure `invalid_request` for an unknown endpoint */
function addFault(world: World, fault: Fault): FaultRow {
  if (fault.endpoint !== undefined && !ENDPOINTS.has(fault.endpoint)) {
    throw new Failure('invalid_request', `endpoint: expected one of ${[...ENDPOINTS].join(', ')}`);
  }
  for (const key of world.faults.keys()) {
    if (world.faults.size() < FAULTS_KEPT) break;
    world.faults.delete(key);
  }
  const fault_id = world.next('fault');
  const row = { fault_id, fault, skip: fault.skip, left: fault.count, hits: 0 };
  world.faults.put(fault_id.toString(), row);
  return row;
}

/** @throws Failure `invalid_request` when the clock would move back or beyond the year 9998 */
function moveClock(world: World, move: ClockMove): { now: Instant; offset_ms: number } {
  const by = 'advance_ms' in move ? move.advance_ms : Date.parse(move.now) - world.now();
  if (by < 0 || world.now() + by > LAST_INSTANT) {
    throw new Failure(
      'invalid_request',
      'the clock moves forward only, to the end of the year 9998 at most',
    );
  }
  const offset_ms = world.settings().offset_ms + by;
  world.change({ offset_ms });
  world.advance();
  return { now: world.now(), offset_ms };
}

/** Restores the world and the switches of the start, except for what the input names. */
function reset(world: World, requests: RequestLog, input: ResetInput): { seed: number } {
  const { initial } = world;
  const switches = switchesSchema.parse({ ...initial.switches, ...input.switches });
  const fresh: Settings = { ...initial, seed: input.seed ?? world.settings().seed, switches };
  world.clear(fresh);
  requests.clear();
  insertSeedData(world);
  resumeChain(world);
  scheduleBackgroundTraffic(world);
  return { seed: fresh.seed };
}
