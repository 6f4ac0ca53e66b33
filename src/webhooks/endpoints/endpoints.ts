/**
 * Managing endpoints: create, change, rotate keys, enable, disable, test. A secret is returned
 * once, when it is made, and afterwards exists only encrypted. A change and its event are one
 * commit.
 */
import type { Db, Tx } from '../../db/connect.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import { Failure, must } from '../../kernel/errors.ts';
import { originOf } from '../../kernel/http/origin.ts';
import type { Ids } from '../../kernel/ids.ts';
import { type Json, jsonText } from '../../kernel/json.ts';
import type { Random } from '../../kernel/random.ts';
import { findEvent, type Outbox, takePosition } from '../../outbox/outbox.ts';
import { type DestinationKind, kindOf } from '../../resources/delivery/destination.ts';
import {
  type endpoint,
  type endpointDetail,
  type HeldChoice,
  type Ordering,
  SCHEMES,
  type Scheme,
} from '../../resources/delivery/endpoint.ts';
import { exampleOfEvent } from '../../resources/delivery/event.ts';
import type { EventType } from '../../resources/delivery/events.ts';
import type { Row } from '../../resources/resource.ts';
import { requestProbe, sendFirst } from '../delivery/queue.ts';
import type { Encryption } from '../encryption.ts';
import type { WebhookSettings } from '../settings.ts';
import { checkAuth, shownAuth } from './destination/auth.ts';
import { missingPackages } from './destination/packages.ts';
import { disabledEvent, testEvent } from './events.ts';
import { checkFilter } from './filter.ts';
import { HEALTHY } from './health.ts';
import {
  decryptAuth,
  decryptHeaders,
  decryptKeys,
  encryptAuth,
  encryptDestination,
  encryptHeaders,
  encryptKeys,
} from './secrets.ts';
import { activeKeys, makeKey, publicKeyOf, rotateKeys, type SigningKey } from './signing.ts';
import * as store from './store.ts';
import { type EndpointInput, type EndpointLimits, validateInput } from './validation.ts';

interface EndpointsDeps {
  db: Db;
  clock: Clock;
  random: Random;
  ids: Ids;
  encryption: Encryption;
  settings: WebhookSettings;
  limits: EndpointLimits;
  emit: Outbox['emit'];
  /** Called when something may have become due. */
  wake: () => void;
}

type Endpoint = Row<typeof endpoint>;
type EndpointWithHealth = Row<typeof endpointDetail>;
/** New key material, returned once. */
interface NewSecrets {
  /** `whsec_…`; null without a new v1 key. */
  secret: string | null;
  /** `whpk_…`; null without a new v1a key. */
  newPublicKey: string | null;
}
interface FilterTestInput {
  /** By default that of the endpoint. */
  filter?: Json | undefined;
  /** One of the two. */
  eventId?: string | undefined;
  type?: EventType | undefined;
}
/** @param owner only the endpoints of this one */
type Page = {
  after: string;
  limit: number;
  failing?: boolean | undefined;
  owner?: string | undefined;
};

const PUBLIC_KEYS_MAX = 1_000;

export type Endpoints = ReturnType<typeof makeEndpoints>;

export function makeEndpoints(deps: EndpointsDeps) {
  const { db, clock, encryption } = deps;
  return {
    /**
     * The endpoint receives every event that is committed after it.
     * @throws Failure `invalid_request`, `url_refused`, `conflict` when there are too many
     */
    createEndpoint: (input: EndpointInput, createdBy: string) => create(deps, input, createdBy),

    /** In order of creation, after the id `after`; from the first for the empty string. */
    listEndpoints: (page: Page) => list(deps, page),

    /** @throws Failure `not_found` */
    async getEndpoint(id: string): Promise<EndpointWithHealth> {
      const row = existing(await store.findEndpoint(db.orm, id));
      const health = (await store.findHealth(db.orm, id)) ?? HEALTHY;
      return { ...endpointOf(row, encryption, clock.now()), health };
    },

    /**
     * Changes the fields of `input`. Another origin without `headers` removes the headers, and
     * without `auth` the authentication; the result says so.
     * Deliveries already claimed are sent as before. Adding a scheme creates its key. Changed types
     * and a changed filter apply to every event that is committed after the change.
     * @throws Failure `not_found`, `invalid_request`, `url_refused`
     */
    updateEndpoint: (id: string, input: Partial<EndpointInput>) => update(deps, id, input),

    /** The owner of the key that created it; undefined for an endpoint that was deleted. */
    async ownerOf(id: string): Promise<string | undefined> {
      return (await store.findOwners(db.orm, [id])).get(id);
    },

    /** As `ownerOf`, by endpoint. */
    ownersOf: (ids: string[]) => store.findOwners(db.orm, ids),

    /** Cancels its pending deliveries. @throws Failure `not_found` */
    async deleteEndpoint(id: string): Promise<void> {
      if (!(await store.deleteEndpoint(db.orm, id, clock.now()))) throw new Failure('not_found');
    },

    /**
     * Resets its health and sends what was held, or cancels it to skip it.
     * @throws Failure `not_found`
     */
    enable: (id: string, held: HeldChoice = 'release') => enable(deps, id, held).finally(deps.wake),

    /** @throws Failure `not_found` */
    disable: (id: string) => disable(deps, id).finally(deps.wake),

    /**
     * Makes a new key for every scheme; the present keys also sign until the overlap ends.
     * @throws Failure `not_found`, `conflict` when too many keys overlap
     */
    rotateSecret: (id: string, overlapMs = deps.settings.rotationOverlapMs) =>
      rotate(deps, id, overlapMs),

    /**
     * Sends an `endpoint.test` to this endpoint only, now, even while it is paused.
     * @throws Failure `not_found`, `conflict`
     */
    sendTest: (id: string) => sendTest(deps, id).finally(deps.wake),

    /**
     * Whether a filter lets an event pass, stored or the example of its type, and its body.
     * @throws Failure `not_found`, `invalid_request`
     */
    testFilter: (id: string, test: FilterTestInput) => testFilter(deps, id, test),

    /** The newest public key of each endpoint that signs with v1a. */
    publicKeys: () => store.listPublicKeys(db.orm, PUBLIC_KEYS_MAX),
  };
}

async function list(
  { db, encryption, clock }: EndpointsDeps,
  page: Page,
): Promise<EndpointWithHealth[]> {
  const rows = await store.listEndpoints(db.orm, page);
  const ids = rows.map(({ id }) => id);
  const healths = await store.findHealths(db.orm, ids);
  const now = clock.now();
  return rows.map((row) => ({
    ...endpointOf(row, encryption, now),
    health: healths.get(row.id) ?? HEALTHY,
  }));
}

async function create(
  deps: EndpointsDeps,
  input: EndpointInput,
  createdBy: string,
): Promise<{ endpoint: Endpoint } & NewSecrets> {
  const { db, clock, random, encryption, settings } = deps;
  const valid = validateInput(input, deps.limits);
  if (valid.destination) refuseWithout(valid.destination.kind);
  const url = valid.url ?? refuse('give url or destination');
  if (valid.auth) checkAuth(valid.auth, url, deps.limits);
  const [all, own] = await Promise.all([
    store.countEndpoints(db.orm),
    store.countEndpoints(db.orm, createdBy),
  ]);
  for (const [count, max, whose] of [
    [all, settings.endpointsMax, ''],
    [own, settings.endpointsPerOwner, ` of ${createdBy}`],
  ] as const)
    if (count >= max)
      throw new Failure(
        'conflict',
        `the limit of ${max} endpoints${whose} is reached; delete one first`,
      );
  const now = clock.now();
  const id = deps.ids.next('ep');
  const signing = valid.signing ?? [...SCHEMES];
  const keys = signing.map((scheme) => makeKey(scheme, now, random));
  const row: store.EndpointRow = {
    id,
    url,
    description: valid.description ?? null,
    eventTypes: valid.eventTypes ?? ['*'],
    filter: valid.filter ?? null,
    ordering: valid.ordering ?? 'none',
    signing,
    ratePerS: valid.ratePerS ?? null,
    retrySchedule: valid.retrySchedule ?? null,
    timeoutMs: valid.timeoutMs ?? null,
    maxInFlight: valid.maxInFlight ?? null,
    encryptedSecrets: encryptKeys(encryption, id, keys),
    encryptedHeaders: encryptHeaders(encryption, id, valid.headers ?? {}),
    encryptedDestination: encryptDestination(encryption, id, valid.destination),
    encryptedAuth: encryptAuth(encryption, id, valid.auth ?? undefined),
    publicKey: newSecrets(keys).newPublicKey,
    state: 'enabled',
    stateReason: null,
    stateAt: now,
    subscribedAt: now,
    skipBefore: null,
    createdBy,
    createdAt: now,
  };
  await db.begin(async (tx) => {
    await takePosition(tx);
    await store.insertEndpoint(tx.orm, row);
  });
  return { endpoint: endpointOf(row, encryption, now), ...newSecrets(keys) };
}

function change(
  { db }: EndpointsDeps,
  id: string,
  patchOf: (row: store.EndpointRow) => Partial<store.EndpointRow>,
  before: (tx: Tx) => Promise<void> = async () => {},
): Promise<store.EndpointRow> {
  return db.begin(async (tx) => {
    await before(tx);
    const { orm } = tx;
    const row = existing(await store.lockEndpoint(orm, id));
    const patch = patchOf(row);
    if (Object.keys(patch).length > 0) await store.updateEndpoint(orm, id, patch);
    return { ...row, ...patch };
  });
}

async function update(deps: EndpointsDeps, id: string, input: Partial<EndpointInput>) {
  const { clock, random, encryption } = deps;
  const { headers, destination, auth, ...columns } = validateInput(input, deps.limits);
  const now = clock.now();
  let made: SigningKey[] = [];
  let removedHeaders: string[] = [];
  let removedAuth = false;
  const subscribes = columns.eventTypes !== undefined || columns.filter !== undefined;
  const patchOf = (before: store.EndpointRow) => {
    refuseOtherKind(before, { url: columns.url, headers, auth });
    if (auth) checkAuth(auth, columns.url ?? before.url, deps.limits);
    made = (columns.signing ?? [])
      .filter((scheme) => !before.signing.includes(scheme))
      .map((scheme) => makeKey(scheme, now, random));
    // Headers may hold secrets, and another origin may belong to another party.
    const moves = isMoved(before.url, columns.url);
    const loses = headers === undefined && moves;
    removedAuth = auth === undefined && moves && before.encryptedAuth !== null;
    if (loses)
      removedHeaders = Object.keys(decryptHeaders(encryption, id, before.encryptedHeaders));
    return {
      ...columns,
      ...(destination
        ? { encryptedDestination: encryptDestination(encryption, id, destination) }
        : {}),
      ...(subscribes ? { subscribedAt: now } : {}),
      ...(headers === undefined && !loses
        ? {}
        : { encryptedHeaders: encryptHeaders(encryption, id, headers ?? {}) }),
      ...(auth === undefined && !removedAuth
        ? {}
        : { encryptedAuth: encryptAuth(encryption, id, auth ?? undefined) }),
      ...(columns.signing === undefined
        ? {}
        : signingPatch(before, made, columns.signing, encryption)),
    };
  };
  const position = subscribes ? takePosition : undefined;
  const row = await change(deps, id, patchOf, position);
  return {
    endpoint: endpointOf(row, encryption, now),
    ...newSecrets(made),
    removedHeaders,
    removedAuth,
  };
}

async function enable(
  { db, clock, encryption }: EndpointsDeps,
  id: string,
  held: HeldChoice,
): Promise<Endpoint> {
  const now = clock.now();
  return db.begin(async (tx) => {
    const { orm } = tx;
    await store.lockHealths(tx, [id]);
    const row = existing(await store.lockEndpoint(orm, id));
    if (row.state === 'enabled') return endpointOf(row, encryption, now);
    const skipBefore = held === 'skip' ? now : row.skipBefore;
    const patch = { state: 'enabled', stateReason: null, stateAt: now, skipBefore };
    await store.updateEndpoint(orm, id, patch);
    await store.resetHealth(orm, id, now);
    return endpointOf({ ...row, ...patch }, encryption, now);
  });
}

async function disable(deps: EndpointsDeps, id: string): Promise<Endpoint> {
  const { db, clock, encryption, emit } = deps;
  const now = clock.now();
  return db.begin(async (tx) => {
    const row = existing(await store.findEndpoint(tx.orm, id));
    if (await store.disableEndpoint(tx.orm, id, 'requested', now))
      await emit(tx, [disabledEvent({ endpointId: id, url: row.url }, 'requested', now)]);
    return endpointOf((await store.findEndpoint(tx.orm, id)) ?? row, encryption, now);
  });
}

function isMoved(from: string, to: string | undefined): boolean {
  return to !== undefined && originOf(to) !== originOf(from);
}

/** What a receiver and a broker may be sent differs, and so does what they have kept of it. */
function refuseOtherKind(
  before: store.EndpointRow,
  { url, headers, auth }: Partial<EndpointInput>,
): void {
  const kind = kindOf(before.url);
  if (url !== undefined && kindOf(url) !== kind)
    refuse(`the kind of an endpoint does not change from ${kind}; create another endpoint`);
  if ((headers || auth) && kind !== 'http') refuse('headers and auth are for HTTP only');
}

function refuseWithout(kind: DestinationKind): void {
  const missing = missingPackages(kind).join(' and ');
  if (missing)
    refuse(`${kind} needs ${missing}, which is not installed here: npm ci --include=optional`);
}

function refuse(problem: string): never {
  throw new Failure('invalid_request', problem);
}

async function rotate(deps: EndpointsDeps, id: string, overlapMs: number) {
  const { clock, random, encryption } = deps;
  const now = clock.now();
  let fresh: SigningKey[] = [];
  const row = await change(deps, id, (before) => {
    fresh = (before.signing as Scheme[]).map((scheme) => makeKey(scheme, now, random));
    const keys = rotateKeys(
      decryptKeys(encryption, id, before.encryptedSecrets),
      fresh,
      overlapMs,
      now,
    );
    return {
      encryptedSecrets: encryptKeys(encryption, id, keys),
      publicKey: newSecrets(fresh).newPublicKey ?? before.publicKey,
    };
  });
  return { endpoint: endpointOf(row, encryption, now), ...newSecrets(fresh) };
}

async function sendTest(deps: EndpointsDeps, id: string): Promise<{ eventId: string }> {
  return deps.db.begin(async (tx) => {
    const row = existing(await store.findEndpoint(tx.orm, id));
    if (row.state !== 'enabled') throw new Failure('conflict', 'the endpoint is disabled');
    const source = { endpointId: id, url: row.url };
    const now = deps.clock.now();
    await requestProbe(tx, id, now);
    const [event] = await deps.emit(tx, [testEvent(source, now)]);
    const { id: eventId } = must(event, 'test event');
    await sendFirst(tx, { endpointId: id, eventId }, now);
    return { eventId };
  });
}

async function testFilter({ db }: EndpointsDeps, id: string, test: FilterTestInput) {
  const { filter = existing(await store.findEndpoint(db.orm, id)).filter, eventId, type } = test;
  if ((eventId === undefined) === (type === undefined))
    throw new Failure('invalid_request', 'give event_id or type, one of them');
  if (filter !== null) checkFilter(filter);
  const body = type ? jsonText(exampleOfEvent(type)) : await findEvent(db, eventId ?? '');
  if (body === undefined) throw new Failure('not_found', `no stored event ${eventId}`);
  return { matches: filter === null || (await store.passesFilter(db, body, filter)), body };
}

function existing(row: store.EndpointRow | undefined): store.EndpointRow {
  if (!row) throw new Failure('not_found');
  return row;
}

function endpointOf(row: store.EndpointRow, encryption: Encryption, now: Instant): Endpoint {
  const { encryptedSecrets, encryptedHeaders, encryptedDestination, encryptedAuth, ...rest } = row;
  const keys = activeKeys(decryptKeys(encryption, row.id, encryptedSecrets), now);
  return {
    ...rest,
    kind: kindOf(row.url),
    ordering: row.ordering as Ordering,
    signing: row.signing as Scheme[],
    state: row.state as Endpoint['state'],
    headerNames: Object.keys(decryptHeaders(encryption, row.id, encryptedHeaders)),
    ...shownAuth(decryptAuth(encryption, row.id, encryptedAuth)),
    keys: keys.map(({ scheme, from, until }) => ({ scheme, from, until })),
  };
}

function newSecrets(keys: readonly SigningKey[]): NewSecrets {
  const v1a = keys.find((key) => key.scheme === 'v1a');
  return {
    secret: keys.find((key) => key.scheme === 'v1')?.secret ?? null,
    newPublicKey: v1a ? publicKeyOf(v1a.secret) : null,
  };
}

function signingPatch(
  before: store.EndpointRow,
  made: readonly SigningKey[],
  signing: readonly Scheme[],
  encryption: Encryption,
): Partial<store.EndpointRow> {
  const old = decryptKeys(encryption, before.id, before.encryptedSecrets);
  const kept = old.filter((key) => signing.includes(key.scheme));
  const added = newSecrets(made).newPublicKey;
  return {
    encryptedSecrets: encryptKeys(encryption, before.id, [...made, ...kept]),
    publicKey: signing.includes('v1a') ? (added ?? before.publicKey) : null,
  };
}
