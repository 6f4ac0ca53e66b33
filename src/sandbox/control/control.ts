/**
 * The hand behind the service: everything a test or a person can do to the world without being a
 * caller of it. Each act first brings time up to the clock and ends in the journal, like a request.
 */
import { addressKey, isAddress } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { enliven } from '../chain/background-traffic.ts';
import { nextHash, resume } from '../chain/chain.ts';
import { ROUTES } from '../endpoints/routes.ts';
import { type Fault, type FaultInput, type FaultRow, faultSchema } from '../faults/kinds.ts';
import { type Switches, switchesSchema } from '../faults/switches.ts';
import {
  type Effect,
  type Member,
  type Settings,
  STATUS,
  type Token,
  tokenKey,
  WALLET_STATUS,
  type Wallet,
} from '../state/records.ts';
import { sow } from '../state/seeds.ts';
import { putWallet } from '../state/wallets.ts';
import type { World } from '../world.ts';
import type {
  ClockMove,
  MaintenanceChange,
  MemberInput,
  ResetInput,
  TokenChange,
  WalletChange,
} from './inputs.ts';
import type { Received, RequestLog } from './request-log.ts';

/** The most faults that are kept; the oldest are forgotten. */
const FAULTS_KEPT = 1000;
/** The clock goes no further than timestamps have digits. */
const LAST_INSTANT = Date.UTC(9999, 0, 1);
const ENDPOINTS = new Set(['absent', ...ROUTES.map(({ name }) => name)]);

export type Control = ReturnType<typeof makeControl>;

export function makeControl(world: World, requests: RequestLog) {
  /** Wraps an act: time before it, the journal after it. */
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
    /** The newest requests received, or the first after number `after`; oldest first. */
    requests: act((after?: number, limit?: number): Received[] =>
      requests.list(after, limit ?? 1000),
    ),
    /** Writes that were applied after number `after`: the truth to compare books with. */
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
    /** Lets the next writes to the chain fail. */
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
      enliven(world);
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
    wallets: first(world.wallets.values()),
    tokens: first(world.tokens.values()),
    faults: [...world.faults.values()],
    counts: {
      wallets: world.wallets.size(),
      tokens: world.tokens.size(),
      effects: world.effectsApplied(),
      requests: requests.total(),
    },
  };
}

/** The first thousand: the state is for looking at, not for moving. */
function first<T>(rows: Iterable<T>): T[] {
  return [...rows].slice(0, 1000);
}

/** @throws Failure `invalid_request` for what is no address */
function setWallet(world: World, addr: string, change: WalletChange): Wallet {
  if (!isAddress(addr)) throw new Failure('invalid_request', 'an address has 42 characters');
  const found = world.wallets.get(addressKey(addr));
  const wallet = found ?? { addr, balance: 0n, status: WALLET_STATUS.normal };
  return putWallet(world, {
    ...wallet,
    balance: (change.amt_token ?? wallet.balance) + (change.delta ?? 0n),
    status: change.status ?? wallet.status,
  });
}

/**
 * Changes a token, or mints one that is complete at once. A new owner or new data is a change on
 * the chain and gets a hash of its own; a status or a lock is not.
 * @throws Failure `invalid_request`
 */
function setToken(world: World, contractId: bigint, id: bigint, change: TokenChange): Token {
  const contract = world.contracts.get(contractId.toString());
  if (!contract) throw new Failure('not_found', 'no such contract');
  const key = tokenKey(contractId, id);
  const now = world.now();
  const found = world.tokens.get(key);
  const token = found ?? {
    contract_id: contractId,
    token_id: id,
    owner: contract.creator_addr,
    uri: '',
    metadata: '',
    extra: '',
    creator: contract.creator_addr,
    created_at: now,
    owned_at: now,
    locked: false,
    status: STATUS.complete,
    last_tx_hash: '',
    exists: true,
    work: null,
  };
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
  // What was being worked on is overtaken, so it cannot stay in a state of being processed.
  if (onChain && status === undefined) next.status = STATUS.complete;
  world.tokens.put(key, next);
  return next;
}

/** Members are never taken away, so their count gives the next number. */
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

/** @throws Failure `invalid_request` for an endpoint that is none */
function addFault(world: World, fault: Fault): FaultRow {
  if (fault.endpoint !== undefined && !ENDPOINTS.has(fault.endpoint)) {
    throw new Failure('invalid_request', `endpoint: one of ${[...ENDPOINTS].join(', ')}`);
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

/** @throws Failure `invalid_request` when it would move back or too far */
function moveClock(world: World, move: ClockMove): { now: Instant; offset_ms: number } {
  const by = 'advance_ms' in move ? move.advance_ms : Date.parse(move.now) - world.now();
  if (by < 0 || world.now() + by > LAST_INSTANT) {
    throw new Failure('invalid_request', 'the clock goes forward, to the year 9999 at most');
  }
  const offset_ms = world.settings().offset_ms + by;
  world.change({ offset_ms });
  world.advance();
  return { now: world.now(), offset_ms };
}

/** Everything as it was at the start, the switches too, but for what the input names. */
function reset(world: World, requests: RequestLog, input: ResetInput): { seed: number } {
  const { initial } = world;
  const switches = switchesSchema.parse({ ...initial.switches, ...input.switches });
  const fresh: Settings = { ...initial, seed: input.seed ?? world.settings().seed, switches };
  world.clear(fresh);
  requests.clear();
  sow(world);
  resume(world);
  enliven(world);
  return { seed: fresh.seed };
}
