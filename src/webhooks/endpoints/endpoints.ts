/**
 * Managing endpoints: create, change, rotate keys, enable, disable, test. A secret is returned
 * once, when it is made, and afterwards exists only encrypted. A change and its event are one
 * commit.
 */
import type { Db } from '../../db/connect.ts';
import { must } from '../../kernel/assert.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import type { Encryption } from '../../kernel/encryption.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import type { Random } from '../../kernel/random.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import type { WebhookSettings } from '../settings.ts';
import type { AllowedRanges } from './address.ts';
import { disabledEvent, testEvent } from './events.ts';
import { HEALTHY, type Health } from './health.ts';
import { decryptHeaders, decryptKeys, encryptHeaders, encryptKeys } from './secrets.ts';
import {
  activeKeys,
  makeKey,
  publicKeyOf,
  rotateKeys,
  SCHEMES,
  type Scheme,
  type SigningKey,
} from './signing.ts';
import * as store from './store.ts';
import { type EndpointInput, type Ordering, validateInput } from './validation.ts';

/** An endpoint without its secrets and header values. */
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
  /** Active signing keys, newest first; during a rotation there are several per scheme. */
  keys: { scheme: Scheme; from: Instant; until: Instant | null }[];
  state: 'enabled' | 'disabled';
  /** gone, failing or requested while disabled. */
  stateReason: string | null;
  stateAt: Instant;
  createdBy: string;
  createdAt: Instant;
}

/** New key material, returned once. */
export interface NewSecrets {
  /** `whsec_…`; null without a new v1 key. */
  secret: string | null;
  /** `whpk_…`; null without a new v1a key. */
  publicKey: string | null;
}

export interface EndpointsDeps {
  db: Db;
  clock: Clock;
  random: Random;
  ids: Ids;
  encryption: Encryption;
  settings: WebhookSettings;
  allowed: AllowedRanges;
  emit: Outbox['emit'];
}

const PUBLIC_KEYS_MAX = 1_000;

export type Endpoints = ReturnType<typeof makeEndpoints>;

export function makeEndpoints(deps: EndpointsDeps) {
  const { db, clock, encryption } = deps;
  const toEndpoint = (row: store.EndpointRow) => endpointOf(row, encryption, clock.now());
  return {
    /**
     * The endpoint receives every event committed from now on.
     * @throws Failure `invalid_request`, `url_refused`, `conflict` when there are too many
     */
    createEndpoint: (input: EndpointInput, createdBy: string) => create(deps, input, createdBy),

    /** In order of creation, after the id `after`; from the first for the empty string. */
    async listEndpoints({ after, limit }: { after: string; limit: number }): Promise<Endpoint[]> {
      return (await store.listEndpoints(db.orm, after, limit)).map(toEndpoint);
    },

    /** @throws Failure `not_found` */
    async getEndpoint(id: string): Promise<Endpoint & { health: Health }> {
      const row = existing(await store.findEndpoint(db.orm, id));
      return { ...toEndpoint(row), health: (await store.findHealth(db.orm, id)) ?? HEALTHY };
    },

    /**
     * Changes the fields of `input`. Deliveries already claimed are sent as before. Adding a scheme
     * creates its key.
     * @throws Failure `not_found`, `invalid_request`, `url_refused`
     */
    updateEndpoint: (id: string, input: Partial<EndpointInput>) => update(deps, id, input),

    /** Cancels its pending deliveries. @throws Failure `not_found` */
    async deleteEndpoint(id: string): Promise<void> {
      if (!(await store.deleteEndpoint(db.orm, id, clock.now()))) throw new Failure('not_found');
    },

    /** Resets its health and resumes its pending deliveries. @throws Failure `not_found` */
    enable: (id: string) => enable(deps, id),

    /** @throws Failure `not_found` */
    disable: (id: string) => disable(deps, id),

    /**
     * Makes a new key for every scheme; the present keys also sign until the overlap ends.
     * @throws Failure `not_found`, `conflict` when too many keys overlap
     */
    rotateSecret: (id: string, overlapMs = deps.settings.rotationOverlapMs) =>
      rotate(deps, id, overlapMs),

    /** Emits an `endpoint.test` to this endpoint only. @throws Failure `not_found`, `conflict` */
    sendTest: (id: string) => sendTest(deps, id),

    /** The newest public key of each endpoint that signs with v1a. */
    publicKeys: () => store.listPublicKeys(db.orm, PUBLIC_KEYS_MAX),
  };
}

async function create(
  deps: EndpointsDeps,
  input: EndpointInput,
  createdBy: string,
): Promise<{ endpoint: Endpoint } & NewSecrets> {
  const { db, clock, random, encryption, settings } = deps;
  const valid = validateInput(input, deps.allowed);
  if ((await store.countEndpoints(db.orm)) >= settings.endpointsMax)
    throw new Failure(
      'conflict',
      `the limit of ${settings.endpointsMax} endpoints is reached; delete one first`,
    );
  const now = clock.now();
  const id = deps.ids.next('ep');
  const signing = valid.signing ?? [...SCHEMES];
  const keys = signing.map((scheme) => makeKey(scheme, now, random));
  const row: store.EndpointRow = {
    id,
    url: valid.url,
    description: valid.description ?? null,
    eventTypes: valid.eventTypes ?? ['*'],
    ordering: valid.ordering ?? 'none',
    signing,
    ratePerS: valid.ratePerS ?? null,
    encryptedSecrets: encryptKeys(encryption, id, keys),
    encryptedHeaders: encryptHeaders(encryption, id, valid.headers ?? {}),
    publicKey: newSecrets(keys).publicKey,
    state: 'enabled',
    stateReason: null,
    stateAt: now,
    createdBy,
    createdAt: now,
  };
  await db.begin(({ orm }) => store.insertEndpoint(orm, row));
  return { endpoint: endpointOf(row, encryption, now), ...newSecrets(keys) };
}

function change(
  { db }: EndpointsDeps,
  id: string,
  patchOf: (row: store.EndpointRow) => Partial<store.EndpointRow>,
): Promise<store.EndpointRow> {
  return db.begin(async ({ orm }) => {
    const row = existing(await store.lockEndpoint(orm, id));
    const patch = patchOf(row);
    if (Object.keys(patch).length > 0) await store.updateEndpoint(orm, id, patch);
    return { ...row, ...patch };
  });
}

async function update(deps: EndpointsDeps, id: string, input: Partial<EndpointInput>) {
  const { clock, random, encryption } = deps;
  const { headers, ...columns } = validateInput(input, deps.allowed);
  const now = clock.now();
  let made: SigningKey[] = [];
  const row = await change(deps, id, (before) => {
    made = (columns.signing ?? [])
      .filter((scheme) => !before.signing.includes(scheme))
      .map((scheme) => makeKey(scheme, now, random));
    return {
      ...columns,
      ...(headers === undefined
        ? {}
        : { encryptedHeaders: encryptHeaders(encryption, id, headers) }),
      ...(columns.signing === undefined
        ? {}
        : signingPatch(before, made, columns.signing, encryption)),
    };
  });
  return { endpoint: endpointOf(row, encryption, now), ...newSecrets(made) };
}

async function enable({ db, clock, encryption }: EndpointsDeps, id: string): Promise<Endpoint> {
  const now = clock.now();
  return db.begin(async ({ orm }) => {
    const row = existing(await store.lockEndpoint(orm, id));
    if (row.state === 'enabled') return endpointOf(row, encryption, now);
    const patch = { state: 'enabled', stateReason: null, stateAt: now };
    await store.updateEndpoint(orm, id, patch);
    await store.resetHealth(orm, id);
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
      publicKey: newSecrets(fresh).publicKey ?? before.publicKey,
    };
  });
  return { endpoint: endpointOf(row, encryption, now), ...newSecrets(fresh) };
}

async function sendTest(deps: EndpointsDeps, id: string): Promise<{ eventId: string }> {
  return deps.db.begin(async (tx) => {
    const row = existing(await store.findEndpoint(tx.orm, id));
    if (row.state !== 'enabled') throw new Failure('conflict', 'the endpoint is disabled');
    const source = { endpointId: id, url: row.url };
    const [event] = await deps.emit(tx, [testEvent(source, deps.clock.now())]);
    return { eventId: must(event, 'test event').id };
  });
}

function existing(row: store.EndpointRow | undefined): store.EndpointRow {
  if (!row) throw new Failure('not_found');
  return row;
}

function endpointOf(row: store.EndpointRow, encryption: Encryption, now: Instant): Endpoint {
  const { encryptedSecrets, encryptedHeaders, ...rest } = row;
  const keys = activeKeys(decryptKeys(encryption, row.id, encryptedSecrets), now);
  return {
    ...rest,
    ordering: row.ordering as Ordering,
    signing: row.signing as Scheme[],
    state: row.state as Endpoint['state'],
    headerNames: Object.keys(decryptHeaders(encryption, row.id, encryptedHeaders)),
    keys: keys.map(({ scheme, from, until }) => ({ scheme, from, until })),
  };
}

function newSecrets(keys: readonly SigningKey[]): NewSecrets {
  const v1a = keys.find((key) => key.scheme === 'v1a');
  return {
    secret: keys.find((key) => key.scheme === 'v1')?.secret ?? null,
    publicKey: v1a ? publicKeyOf(v1a.secret) : null,
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
  const added = newSecrets(made).publicKey;
  return {
    encryptedSecrets: encryptKeys(encryption, before.id, [...made, ...kept]),
    publicKey: signing.includes('v1a') ? (added ?? before.publicKey) : null,
  };
}
