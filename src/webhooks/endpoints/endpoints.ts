/**
 * What people do with endpoints: make them, change them, rotate their keys, switch them off and on.
 * A secret is answered once, where it is made; afterwards it exists only sealed. Every change that
 * receivers should know of is one commit with its event.
 */
import type { Db } from '../../db/connect.ts';
import { must } from '../../kernel/assert.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import type { Encryption } from '../../kernel/encryption.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import type { Random } from '../../kernel/random.ts';
import type { AllowedRanges } from '../delivery/address.ts';
import { HEALTHY, type Health } from '../delivery/health.ts';
import { disableEndpoint } from '../delivery/result-store.ts';
import type { Emit } from '../delivery/result-writer.ts';
import type { WebhookSettings } from '../settings.ts';
import { disabledEvent, testEvent } from './events.ts';
import {
  liveKeys,
  makeKey,
  publicKeyOf,
  rotateKeys,
  SCHEMES,
  type Scheme,
  type SigningKey,
} from './keys.ts';
import { type EndpointInput, judgeInput, type Ordering } from './rules.ts';
import { closeHeaders, closeKeys, openHeaders, openKeys } from './secrets.ts';
import * as store from './store.ts';

/** An endpoint as it may be shown: no secret, no value of a header. */
export interface Endpoint {
  id: string;
  url: string;
  description: string | null;
  eventTypes: string[];
  ordering: Ordering;
  signing: Scheme[];
  ratePerS: number | null;
  headerNames: string[];
  publicKey: string | null;
  /** Each signing key's time, newest first; during a rotation there are several per scheme. */
  keys: { scheme: Scheme; from: Instant; until: Instant | null }[];
  state: 'enabled' | 'disabled';
  /** gone, failing or requested while disabled. */
  stateReason: string | null;
  stateAt: Instant;
  createdBy: string;
  createdAt: Instant;
}

/** What is answered once, when keys are made. */
export interface NewKeys {
  /** `whsec_…`, when v1 was asked for. */
  secret: string | null;
  /** `whpk_…`, when v1a was asked for. */
  publicKey: string | null;
}

export interface EndpointsDeps {
  db: Db;
  clock: Clock;
  random: Random;
  ids: Ids;
  seal: Encryption;
  settings: WebhookSettings;
  allowed: AllowedRanges;
  emit: Emit;
}

const LISTED_MAX = 1_000;

export type Endpoints = ReturnType<typeof makeEndpoints>;

export function makeEndpoints(given: EndpointsDeps) {
  const { db, clock, seal } = given;
  const show = (row: store.EndpointRow) => shown(row, seal, clock.now());
  return {
    /**
     * Makes an endpoint; it gets every event committed from now on.
     * @throws Failure `invalid_request`, `url_refused`, `conflict` when there are too many
     */
    createEndpoint: (input: EndpointInput, createdBy: string) => create(given, input, createdBy),

    /** A page in order of creation. */
    async listEndpoints(page: { cursor: string; limit: number }) {
      const rows = await store.listEndpoints(db.orm, page.cursor, page.limit);
      const last = rows.length === page.limit ? rows.at(-1) : undefined;
      return { data: rows.map(show), nextCursor: last?.id ?? null };
    },

    /** @throws Failure `not_found` */
    async getEndpoint(id: string): Promise<Endpoint & { health: Health }> {
      const row = found(await store.findEndpoint(db.orm, id));
      return { ...show(row), health: (await store.findHealth(db.orm, id)) ?? HEALTHY };
    },

    /**
     * Changes the given fields; what is under way goes on as it was claimed, every later attempt
     * follows the new ones. A scheme that is added gets its key here, answered once.
     * @throws Failure `not_found`, `invalid_request`, `url_refused`
     */
    updateEndpoint: (id: string, input: Partial<EndpointInput>) => update(given, id, input),

    /** Its deliveries that are not made yet are cancelled. @throws Failure `not_found` */
    async deleteEndpoint(id: string): Promise<void> {
      if (!(await store.deleteEndpoint(db.orm, id, clock.now()))) throw new Failure('not_found');
    },

    /**
     * Sends to it again, beginning with what waited. Its failures are forgotten. Harmless when
     * enabled.
     * @throws Failure `not_found`
     */
    enable: (id: string) => enable(given, id),

    /** Sends nothing more to it until it is enabled. @throws Failure `not_found` */
    disable: (id: string) => disable(given, id),

    /**
     * New keys for every scheme of the endpoint; the present ones go on signing beside them for the
     * overlap.
     * @throws Failure `not_found`, `conflict` when too many keys overlap
     */
    rotateSecret: (id: string, overlapMs = given.settings.rotationOverlapMs) =>
      rotate(given, id, overlapMs),

    /** Emits an `endpoint.test` for this endpoint alone. @throws Failure `not_found`, `conflict` */
    sendTest: (id: string) => sendTest(given, id),

    /** The public key of each endpoint that signs with v1a, newest of each. */
    publicKeys: () => store.listPublicKeys(db.orm, LISTED_MAX),
  };
}

async function create(
  given: EndpointsDeps,
  input: EndpointInput,
  createdBy: string,
): Promise<{ endpoint: Endpoint } & NewKeys> {
  const { db, clock, random, seal, settings } = given;
  const wanted = judgeInput(input, given.allowed);
  if ((await store.countEndpoints(db.orm)) >= settings.endpointsMax)
    throw new Failure('conflict', `there are ${settings.endpointsMax} endpoints already`);
  const now = clock.now();
  const id = given.ids.next('ep');
  const signing = [...(wanted.signing ?? SCHEMES)];
  const keys = signing.map((scheme) => makeKey(scheme, now, random));
  const row: store.EndpointRow = {
    id,
    url: wanted.url,
    description: wanted.description ?? null,
    eventTypes: [...(wanted.eventTypes ?? ['*'])],
    ordering: wanted.ordering ?? 'none',
    signing,
    ratePerS: wanted.ratePerS ?? null,
    encryptedSecrets: closeKeys(seal, id, keys),
    encryptedHeaders: closeHeaders(seal, id, wanted.headers ?? {}),
    publicKey: newKeys(keys).publicKey,
    ...{ state: 'enabled', stateReason: null, stateAt: now, createdBy, createdAt: now },
  };
  await db.begin(({ orm }) => store.insertEndpoint(orm, row));
  return { endpoint: shown(row, seal, now), ...newKeys(keys) };
}

/** Changes one endpoint under its lock. @throws Failure `not_found` */
function change(
  { db }: EndpointsDeps,
  id: string,
  patchOf: (row: store.EndpointRow) => Partial<store.EndpointRow>,
): Promise<store.EndpointRow> {
  return db.begin(async ({ orm }) => {
    const row = found(await store.lockEndpoint(orm, id));
    const patch = patchOf(row);
    if (Object.keys(patch).length > 0) await store.updateEndpoint(orm, id, patch);
    return { ...row, ...patch };
  });
}

async function update(given: EndpointsDeps, id: string, input: Partial<EndpointInput>) {
  const { clock, random, seal } = given;
  const { headers, ...plain } = judgeInput(input, given.allowed);
  const now = clock.now();
  let made: SigningKey[] = [];
  const row = await change(given, id, (before) => {
    made = (plain.signing ?? [])
      .filter((scheme) => !before.signing.includes(scheme))
      .map((scheme) => makeKey(scheme, now, random));
    return {
      ...patchOf(plain),
      ...(headers === undefined ? {} : { encryptedHeaders: closeHeaders(seal, id, headers) }),
      ...(plain.signing === undefined ? {} : signingPatch(before, made, plain.signing, seal)),
    };
  });
  return { endpoint: shown(row, seal, now), ...newKeys(made) };
}

async function enable({ db, clock, seal }: EndpointsDeps, id: string): Promise<Endpoint> {
  const now = clock.now();
  return db.begin(async ({ orm }) => {
    const row = found(await store.lockEndpoint(orm, id));
    if (row.state === 'enabled') return shown(row, seal, now);
    const patch = { state: 'enabled', stateReason: null, stateAt: now };
    await store.updateEndpoint(orm, id, patch);
    await store.resetHealth(orm, id);
    return shown({ ...row, ...patch }, seal, now);
  });
}

async function disable(given: EndpointsDeps, id: string): Promise<Endpoint> {
  const { db, clock, seal, emit } = given;
  const now = clock.now();
  return db.begin(async (tx) => {
    const row = found(await store.findEndpoint(tx.orm, id));
    if (await disableEndpoint(tx, id, 'requested', now))
      await emit(tx, [disabledEvent(id, row.url, 'requested', now)]);
    return shown((await store.findEndpoint(tx.orm, id)) ?? row, seal, now);
  });
}

async function rotate(given: EndpointsDeps, id: string, overlapMs: number) {
  const { clock, random, seal } = given;
  const now = clock.now();
  let fresh: SigningKey[] = [];
  const row = await change(given, id, (before) => {
    fresh = (before.signing as Scheme[]).map((scheme) => makeKey(scheme, now, random));
    const keys = rotateKeys(openKeys(seal, id, before.encryptedSecrets), fresh, overlapMs, now);
    return {
      encryptedSecrets: closeKeys(seal, id, keys),
      publicKey: newKeys(fresh).publicKey ?? before.publicKey,
    };
  });
  return { endpoint: shown(row, seal, now), ...newKeys(fresh) };
}

async function sendTest(given: EndpointsDeps, id: string): Promise<{ eventId: string }> {
  return given.db.begin(async (tx) => {
    const row = found(await store.findEndpoint(tx.orm, id));
    if (row.state !== 'enabled') throw new Failure('conflict', 'the endpoint is disabled');
    const [event] = await given.emit(tx, [testEvent(id, row.url, given.clock.now())]);
    return { eventId: must(event, 'test event').id };
  });
}

function found(row: store.EndpointRow | undefined): store.EndpointRow {
  if (!row) throw new Failure('not_found');
  return row;
}

function shown(row: store.EndpointRow, seal: Encryption, now: Instant): Endpoint {
  const { encryptedSecrets, encryptedHeaders, ...rest } = row;
  const keys = liveKeys(openKeys(seal, row.id, encryptedSecrets), now);
  return {
    ...rest,
    ordering: row.ordering as Ordering,
    signing: row.signing as Scheme[],
    state: row.state as Endpoint['state'],
    headerNames: Object.keys(openHeaders(seal, row.id, encryptedHeaders)),
    keys: keys.map(({ scheme, from, until }) => ({ scheme, from, until })),
  };
}

function newKeys(keys: readonly SigningKey[]): NewKeys {
  const v1a = keys.find((key) => key.scheme === 'v1a');
  return {
    secret: keys.find((key) => key.scheme === 'v1')?.secret ?? null,
    publicKey: v1a ? publicKeyOf(v1a.secret) : null,
  };
}

function patchOf(input: Omit<Partial<EndpointInput>, 'headers'>): Partial<store.EndpointRow> {
  const { eventTypes, signing, ...rest } = input;
  const given = Object.entries(rest).filter(([, value]) => value !== undefined);
  return {
    ...Object.fromEntries(given),
    ...(eventTypes === undefined ? {} : { eventTypes: [...eventTypes] }),
    ...(signing === undefined ? {} : { signing: [...signing] }),
  };
}

/** Keys of schemes that are no longer wanted are forgotten. */
function signingPatch(
  before: store.EndpointRow,
  made: readonly SigningKey[],
  signing: readonly Scheme[],
  seal: Encryption,
): Partial<store.EndpointRow> {
  const old = openKeys(seal, before.id, before.encryptedSecrets);
  const kept = old.filter((key) => signing.includes(key.scheme));
  const added = newKeys(made).publicKey;
  return {
    encryptedSecrets: closeKeys(seal, before.id, [...made, ...kept]),
    publicKey: signing.includes('v1a') ? (added ?? before.publicKey) : null,
  };
}
